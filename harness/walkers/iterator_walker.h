// What the two ways to start an iterator of profile2.h have in common as walkers.
#pragma once

#include "harness/walkers/iterator_sequence.h"
#include "harness/walkers/walker.h"

namespace framestorm {

class IteratorWalker : public Walker {
 public:
  const WalkFacts* facts() const override { return &facts_; }

  // Copies frames as a profiler would, up to depth; then makes the target's calls, if any.
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override;

 protected:
  IteratorWalker(WalkerId id, const Exports& exports)
      : Walker(id), api_(exports), sequence_(api_) {}
  virtual IteratorStart start(const WalkTarget& target, void* ucontext) const = 0;

  // Options as handed on: without the one that ends a trace before its Java frames, which is what oracles
  // look for (harness/hotspot/walkers_test has its tests).
  static int32_t options_of(const WalkTarget& target) {
    return static_cast<int32_t>(target.options & ~uint32_t{ASGST_END_ON_FIRST_JAVA_FRAME});
  }

  WalkFacts facts_;

 private:
  IteratorApi api_;
  IteratorSequence sequence_;
};

}  // namespace framestorm
