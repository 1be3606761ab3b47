// What safepoint queues of profile2.h note of a thread, told at once: a halted thread comes to no poll.
#include "harness/walkers/iterator_walker.h"
#include "harness/walkers/queue_sequence.h"

namespace framestorm {
namespace {

class AsgstQueue final : public IteratorWalker {
 public:
  explicit AsgstQueue(const Exports& exports)
      : IteratorWalker(WalkerId::asgst_queue, exports),
        function_(exports.require(id())),
        sequence_(exports) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const int32_t result = IteratorWalker::walk(target, frames, depth, ucontext);
    if (!target.queue_calls.empty()) {
      sequence_.run(target.queue_calls, ucontext, options_of(target), &facts_);
    }
    return result;
  }

  void abandoned(const WalkTarget&) noexcept override { sequence_.abandoned(); }

 private:
  IteratorStart start(const WalkTarget& target, void* ucontext) const override {
    return {.by = function_, .context = ucontext, .options = options_of(target)};
  }

  decltype(&ASGST_RunWithIterator) function_;
  QueueSequence sequence_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst_queue>, const Exports& exports) {
  return std::make_unique<AsgstQueue>(exports);
}

}  // namespace framestorm
