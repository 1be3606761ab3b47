// Of an unmutated victim that is halted in C or C++ code, a trace with C frames begins with those that
// the unwinder of the C++ runtime sees (victim/native_unwinder.h): down to the VM's own code, or to the
// thread's first frame.
#include "harness/base/hex.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/native_unwinder.h"

namespace framestorm {
namespace {

class NativeFramesOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    if (!applies(view)) return;
    const std::span<const NativeFrame> theirs = unwind(view);
    if (theirs.empty() && !unwinder_.has_ended()) return;
    const size_t mine = leading(view);
    for (size_t i = 0; i < std::min(mine, theirs.size()); ++i) {
      const Frame frame = view.frame(i);
      if (frame.pc != theirs[i].pc) {
        report(i, frame.pc, theirs[i].pc, out);
        return;
      }
      if (view.subject.walker->layout().sp >= 0 && frame.sp != theirs[i].sp) {
        out->broken("wrong-c-frames", "frame " + std::to_string(i) + " has sp " + hex(frame.sp) +
                                          ", which is " + hex(theirs[i].sp));
        return;
      }
    }
    const bool cut = view.record.result >= view.record.depth;
    if (mine < theirs.size() && !cut) {
      report(mine, 0, theirs[mine].pc, out);
    } else if (mine > theirs.size() && unwinder_.has_ended()) {
      report(theirs.size(), view.frame(theirs.size()).pc, 0, out);
    }
  }

 private:
  static bool applies(const WalkView& view) {
    const WalkerTraits& walker = view.subject.walker->traits();
    return view.subject.unmutated && view.record.end == WalkEnd::returned &&
           view.record.result > 0 && view.record.result <= view.record.depth &&
           view.subject.victim->slot != nullptr && walker.layout.pc >= 0 &&
           // A queue's handler is told when the thread has returned from those.
           !walker.queue_calls && (view.record.options & walker.options & kIncludeCFrames) != 0;
  }

  static bool is_the_vms(const WalkView& view, uintptr_t pc) {
    return view.subject.jvm->code_map().in_code_cache(pc);
  }

  // How many frames of C and C++ the trace begins with.
  static size_t leading(const WalkView& view) {
    size_t count = 0;
    for (; count < view.record.frame_count(); ++count) {
      const Frame frame = view.frame(count);
      // Those of code that the VM made may have none.
      if (!is_machine(frame.type) || frame.pc == 0 || is_the_vms(view, frame.pc)) break;
    }
    return count;
  }

  std::span<const NativeFrame> unwind(const WalkView& view) {
    const ThreadSlot* const slot = view.subject.victim->slot;
    // Looked at once a halt.
    if (slot != slot_ || slot->parks.load() != parks_) {
      slot_ = slot;
      parks_ = slot->parks.load();
      frames_ = unwinder_.unwind(
          view.subject.victim->context_copy,
          [](const void* with, uintptr_t pc) {
            return is_the_vms(*static_cast<const WalkView*>(with), pc);
          },
          &view);
    }
    return frames_;
  }

  void report(size_t index, uintptr_t mine, uintptr_t theirs, Violations* out) const {
    const auto name = [&](uintptr_t pc) {
      return pc == 0 ? std::string("none of C or C++") : modules_.describe(pc);
    };
    out->broken("wrong-c-frames", "frame " + std::to_string(index) + " is " + name(mine) +
                                      ", the unwinder of the C++ runtime has " + name(theirs));
  }

  const Modules modules_ = Modules::snapshot();
  NativeUnwinder unwinder_;
  std::span<const NativeFrame> frames_;
  const ThreadSlot* slot_ = nullptr;
  uint32_t parks_ = 0;
};

const RegisteredOracle<NativeFramesOracle> kRegistered({.name = "native-frames",
                                                        .order = 112,
                                                        .needs = {Need::halted_world, Need::trace},
                                                        .judges_further = true});

}  // namespace
}  // namespace framestorm
