// A walk writes nothing but frames[0..depth). The guard page behind the array is the fault oracle's,
// unless the walker contains its faults; here are the bytes around it, the context, the mutated
// words, errno and the signal mask. The victim's stack and thread are compared with their copies by
// the executor, once mutations are undone.

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class MemoryOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) {
    const WalkRecord& record = view.record;
    return !is_canary_intact(record) || record.buffer->is_overrun() || is_context_changed(record) ||
           record.errno_after != kErrnoMarker || record.signal_mask_changed ||
           is_left_behind(record.incidents->contained) || !view.subject.undo->untouched();
  }

  void check(const WalkView& view, Further&, Violations* out) override {
    if (!is_canary_intact(view.record)) {
      out->broken("writes-before-frames", "bytes right before frames[0] were overwritten");
    }
    if (view.record.buffer->is_overrun()) {
      out->broken("writes-past-frames", "frames[depth] or beyond was written, depth " +
                                            std::to_string(view.record.depth));
    }
    if (view.record.end != WalkEnd::returned) return;
    if (is_context_changed(view.record)) {
      out->broken("context-changed", "the walk changed the ucontext it was given");
    }
    if (!view.subject.undo->untouched()) {
      out->broken("victim-changed",
                  "the walk wrote to a mutated word of the victim's stack or thread");
    }
    if (view.record.errno_after != kErrnoMarker) {
      out->broken("errno-changed", "errno went from " + std::to_string(kErrnoMarker) + " to " +
                                       std::to_string(view.record.errno_after));
    }
    const ContainedFaults& contained = view.record.incidents->contained;
    if (is_left_behind(contained)) {
      out->add(FindingKind::contract, "fault-leaves-state",
               "the walker recovered from a fault of its own and left " +
                   (contained.mask_changed
                        ? "another signal mask"
                        : std::to_string(contained.locks_held) + " pthread locks taken"));
    }
    if (view.record.signal_mask_changed) {
      out->broken("signal-mask-changed", "the thread's signal mask differs after the walk");
    }
  }

 private:
  static bool is_left_behind(const ContainedFaults& contained) {
    return contained.count > 0 && (contained.mask_changed || contained.locks_held > 0);
  }
  static bool is_canary_intact(const WalkRecord& record) {
    return record.buffer->canary_intact(record.frames);
  }
  static bool is_context_changed(const WalkRecord& record) {
    return record.context != nullptr && !same_context(*record.context, *record.expected_context);
  }
};

const RegisteredOracle<MemoryOracle> kRegistered({.name = "memory",
                                                  .order = 30,
                                                  .needs = {Need::incidents, Need::guarded_frames},
                                                  .judges_further = true,
                                                  .suspects = &MemoryOracle::suspects});

}  // namespace
}  // namespace framestorm
