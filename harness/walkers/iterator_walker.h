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

 private:
  IteratorApi api_;
  IteratorSequence sequence_;
  WalkFacts facts_;
};

}  // namespace framestorm
