// The C and C++ frames of an unmutated victim, where they are asked for or always given, are those that
// the unwinder of the C++ runtime sees (victim/native_unwinder.h): at the beginning of a trace, and below
// each call of C or C++ into Java, by call_stub or by the stub of an upcall. They go down to the VM's own
// code, or to the thread's first frame. A thread that has some on top is not refused, once it has begun.
//
//   Java frame    keeps its caller's frame pointer, and above that the return address to the stub;
//                 from there to the stub's sp an interpreted one has its parameters
//   stub          rbp ──> caller's frame pointer, return address to C++
//   C++ frame     from these two and its sp it is unwound as from a context
#include <algorithm>
#include <span>
#include <vector>

#include "harness/base/hex.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/context.h"
#include "harness/victim/native_unwinder.h"

namespace framestorm {
namespace {

class NativeFramesOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    if (!applies(view)) return;
    const bool refused = view.record.result <= 0;
    if (refused && !may_not_be_refused(view)) return;
    const ThreadSlot* const slot = view.subject.victim->slot;
    if (slot != slot_ || slot->parks.load() != parks_) {
      slot_ = slot;
      parks_ = slot->parks.load();
      groups_.clear();
    }
    const Group& top = unwind(view, 0, view.subject.victim->context_copy);
    if (refused) {
      if (!top.frames.empty()) {
        out->broken("refuses-c-frames",
                    std::string(view.subject.walker->error_name(view.record.result)));
      }
      return;
    }
    if (!compare(view, 0, top, out)) return;
    if (view.subject.walker->layout().sp < 0) return;
    for (size_t i = 0; i < view.record.frame_count(); ++i) {
      ucontext_t caller;
      const uintptr_t sp = caller_of_entry(view, i, &caller);
      if (sp != 0 && !compare(view, i + 1, unwind(view, sp, caller), out)) return;
    }
  }

 private:
  static bool applies(const WalkView& view) {
    const WalkerTraits& walker = view.subject.walker->traits();
    return view.subject.unmutated && view.record.end == WalkEnd::returned &&
           view.record.result <= view.record.depth && view.subject.victim->slot != nullptr &&
           walker.layout.pc >= 0 &&
           // A queue's handler is told when the thread has returned from those.
           !walker.queue_calls && view.gives_c_frames();
  }

  static bool may_not_be_refused(const WalkView& view) {
    const WalkRecord& record = view.record;
    const WalkerTraits& walker = view.subject.walker->traits();
    const WalkerError* const error = walker.find_error(record.result);
    return takes_thread(view) && record.depth > 0 && !record.in_collection && error != nullptr &&
           !error->not_safe && !error->exiting && walker.contained_error != record.result;
  }

  static bool takes_thread(const WalkView& view) {
    const Victim& victim = *view.subject.victim;
    const uint32_t state = view.record.thread_state;
    if (victim.is_java_thread) return is_in_java(state) || is_outside_java(state);
    const WalkerTraits& walker = view.subject.walker->traits();
    // Found by its stack it is a Java thread, which is new.
    return victim.scenario != ScenarioId::thread_starting &&
           walker.finds_victim != FindsVictim::by_env &&
           (view.record.options & walker.options & kIncludeNonJavaThreads) != 0;
  }

  static bool is_the_vms(const WalkView& view, uintptr_t pc) {
    return view.subject.jvm->code_map().in_code_cache(pc);
  }

  // Of one halt.
  struct Group {
    uintptr_t sp = 0;  // of the frame that C++ has called, 0 on top
    std::vector<NativeFrame> frames;
    bool ended = false;
  };

  // How many frames from `first` on are of C and C++.
  static size_t native_from(const WalkView& view, size_t first) {
    size_t at = first;
    for (; at < view.record.frame_count(); ++at) {
      const Frame frame = view.frame(at);
      // Those of code that the VM made may have none.
      if (!is_machine(frame.type) || frame.pc == 0 || is_the_vms(view, frame.pc)) break;
    }
    return at - first;
  }

  // False when they differ, which is then reported.
  bool compare(const WalkView& view, size_t first, const Group& group, Violations* out) const {
    const std::span<const NativeFrame> theirs = group.frames;
    if (theirs.empty() && !group.ended) return true;
    const size_t mine = native_from(view, first);
    for (size_t i = 0; i < std::min(mine, theirs.size()); ++i) {
      const Frame frame = view.frame(first + i);
      if (frame.pc != theirs[i].pc) {
        report(first + i, frame.pc, theirs[i].pc, out);
        return false;
      }
      if (view.subject.walker->layout().sp >= 0 && frame.sp != theirs[i].sp) {
        out->broken("wrong-c-frames", "frame " + std::to_string(first + i) + " has sp " +
                                          hex(frame.sp) + ", which is " + hex(theirs[i].sp));
        return false;
      }
    }
    const bool cut = view.record.result >= view.record.depth;
    if (mine < theirs.size() && !cut) {
      report(first + mine, 0, theirs[mine].pc, out);
      return false;
    }
    if (mine > theirs.size() && group.ended) {
      report(first + theirs.size(), view.frame(first + theirs.size()).pc, 0, out);
      return false;
    }
    return true;
  }

  // Where C or C++ has called into Java, the frame that did: its registers in *caller. 0 where the frame at
  // `index` is no such call's, else its sp.
  static uintptr_t caller_of_entry(const WalkView& view, size_t index, ucontext_t* caller) {
    const Frame frame = view.frame(index);
    const Victim& victim = *view.subject.victim;
    const CodeEntry* const code = view.subject.jvm->code_map().find(frame.pc);
    const bool enters_java = code != nullptr && code->kind == CodeKind::stub &&
                             (code->name == "call_stub" || code->name.starts_with("upcall_stub"));
    if (!enters_java) return 0;
    const auto on_stack = [&](uintptr_t place) {
      return place % sizeof(uintptr_t) == 0 && place >= victim.sp &&
             place < victim.stack_base - 2 * sizeof(uintptr_t);
    };
    const uintptr_t callee_sp = index == 0 ? victim.sp : view.frame(index - 1).sp;
    // An adapter to the interpreter leaves a copy of the return address above the parameters.
    for (uintptr_t place = frame.sp - sizeof(uintptr_t); place > callee_sp && on_stack(place);
         place -= sizeof(uintptr_t)) {
      const uintptr_t link = place - sizeof(uintptr_t);
      if (word_at(place) != frame.pc || !on_stack(link)) continue;
      const uintptr_t fp = word_at(link);
      if (!on_stack(fp) || fp < frame.sp) continue;
      copy_context(victim.context_copy, caller);
      set_register(caller, Register::pc, word_at(fp + sizeof(uintptr_t)));
      set_register(caller, Register::sp, fp + 2 * sizeof(uintptr_t));
      set_register(caller, Register::fp, word_at(fp));
      return frame.sp;
    }
    return 0;
  }
  static uintptr_t word_at(uintptr_t place) { return *reinterpret_cast<const uintptr_t*>(place); }

  // Looked at once a halt.
  const Group& unwind(const WalkView& view, uintptr_t sp, const ucontext_t& from) {
    const auto known = std::ranges::find(groups_, sp, &Group::sp);
    if (known != groups_.end()) return *known;
    const std::span<const NativeFrame> frames = unwinder_.unwind(
        from,
        [](const void* with, uintptr_t pc) {
          return is_the_vms(*static_cast<const WalkView*>(with), pc);
        },
        &view);
    groups_.push_back({sp, {frames.begin(), frames.end()}, unwinder_.has_ended()});
    return groups_.back();
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
  std::vector<Group> groups_;
  const ThreadSlot* slot_ = nullptr;
  uint32_t parks_ = 0;
};

const RegisteredOracle<NativeFramesOracle> kRegistered({.name = "native-frames",
                                                        .order = 112,
                                                        .needs = {Need::halted_world, Need::trace},
                                                        .judges_further = true});

}  // namespace
}  // namespace framestorm
