// What the two ways to start an iterator of profile2.h have in common as walkers.
#pragma once

#include <span>

#include "harness/walkers/iterator_sequence.h"
#include "harness/walkers/walker.h"

namespace framestorm {

class IteratorWalker : public Walker {
 public:
  // The frames that follow those of an iterator, and what comes after them.
  struct Rest {
    std::span<const ASGST_Frame> frames;
    int end = ASGST_NO_FRAME;
  };

  const WalkFacts* facts() const override { return &facts_; }

  // Copies frames as a profiler would, up to depth; then makes the target's calls, if any.
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override;

 protected:
  IteratorWalker(WalkerId id, const Exports& exports)
      : Walker(id), api_(exports), sequence_(api_) {}
  virtual IteratorStart start(const WalkTarget& target, void* ucontext) const = 0;
  // Of an iterator that has ended at a frame mark, opened with these options; null: not known.
  virtual const Rest* rest(ASGST_Iterator* /*iterator*/, int32_t /*options*/) const {
    return nullptr;
  }

  // Options as handed on: without those that end a trace before its Java frames, which is what oracles
  // look for, or at a mark (harness/hotspot has tests of both).
  static int32_t options_of(const WalkTarget& target) {
    constexpr uint32_t kEndEarly = ASGST_END_ON_FIRST_JAVA_FRAME | ASGST_END_AT_FRAME_MARK;
    return static_cast<int32_t>(target.options & ~kEndEarly);
  }

  WalkFacts facts_;

 private:
  struct Copying;

  IteratorApi api_;
  IteratorSequence sequence_;
};

}  // namespace framestorm
