// What the two ways to start an iterator of profile2.h have in common as walkers.
#pragma once

#include "harness/walkers/iterator_sequence.h"
#include "harness/walkers/walker.h"

namespace framestorm {

class IteratorWalker : public Walker {
 public:
  explicit IteratorWalker(const Exports& exports) : api_(exports), sequence_(api_) {}

  const FrameLayout& layout() const override;
  const WalkFacts* facts() const override { return &facts_; }
  bool documented_error(int32_t code) const override;
  std::string_view error_name(int32_t code) const override;
  bool error_agrees(int32_t code, uint32_t thread_state) const override;
  int32_t lowest_bci() const override { return kNoBci; }
  std::optional<int32_t> native_bci() const override { return kNoBci; }

  // Copies frames as a profiler would, up to depth; then makes the target's calls, if any.
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override;

 protected:
  virtual IteratorStart start(const WalkTarget& target, void* ucontext) const = 0;

 private:
  IteratorApi api_;
  IteratorSequence sequence_;
  WalkFacts facts_;
};

}  // namespace framestorm
