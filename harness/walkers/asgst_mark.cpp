// Frame marks of profile2.h: a walk down to the newest mark, and the callers that were kept of its
// frame.
#include "harness/walkers/frame_marks.h"
#include "harness/walkers/iterator_walker.h"

namespace framestorm {
namespace {

class AsgstMark final : public IteratorWalker {
 public:
  explicit AsgstMark(const Exports& exports)
      : IteratorWalker(WalkerId::asgst_mark, exports), marks_(FrameMarks::of(exports)) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    thread_ = target.java_thread;
    const int32_t result = IteratorWalker::walk(target, frames, depth, ucontext);
    marks_.want(thread_, ucontext);
    return result;
  }

  bool keeps_state_in_thread() const override { return marks_.is_wanted(thread_); }

 private:
  IteratorStart start(const WalkTarget& target, void* ucontext) const override {
    return {.context = ucontext, .options = options_of(target) | ASGST_END_AT_FRAME_MARK};
  }
  const Rest* rest(ASGST_Iterator* iterator, int32_t options) const override {
    return marks_.callers(thread_, iterator, options);
  }

  FrameMarks& marks_;
  const void* thread_ = nullptr;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst_mark>, const Exports& exports) {
  return std::make_unique<AsgstMark>(exports);
}

}  // namespace framestorm
