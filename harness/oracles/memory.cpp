// Oracle 2: a walk writes nothing but frames[0..depth). The guard page behind the array is the
// fault oracle's; here are the bytes before it, the context, the mutated words, errno and the
// signal mask. The victim's stack and thread are compared with their copies by the executor, once
// mutations are undone.
#include <cstring>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class MemoryOracle final : public Oracle {
 public:
  std::string_view name() const override { return "memory"; }
  bool judges_rewalks() const override { return true; }

  void check(const WalkView& view, Rewalk&, Violations* out) override {
    if (!view.buffer->canary_intact(view.frames)) {
      out->add(FindingKind::contract, "writes-before-frames",
               "bytes right before frames[0] were overwritten");
    }
    if (view.end != WalkEnd::returned) return;
    if (view.context != nullptr && !same_context(*view.context, *view.expected_context)) {
      out->add(FindingKind::contract, "context-changed",
               "the walk changed the ucontext it was given");
    }
    if (!view.undo->untouched()) {
      out->add(FindingKind::contract, "victim-changed",
               "the walk wrote to a mutated word of the victim's stack or thread");
    }
    if (view.errno_after != view.errno_before) {
      out->add(FindingKind::contract, "errno-changed",
               "errno went from " + std::to_string(view.errno_before) + " to " +
                   std::to_string(view.errno_after));
    }
    if (view.signal_mask_checked && view.signal_mask_changed) {
      out->add(FindingKind::contract, "signal-mask-changed",
               "the thread's signal mask differs after the walk");
    }
  }
};

}  // namespace

std::unique_ptr<Oracle> make_memory_oracle() { return std::make_unique<MemoryOracle>(); }

}  // namespace framestorm
