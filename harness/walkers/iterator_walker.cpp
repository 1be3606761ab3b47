#include "harness/walkers/iterator_walker.h"

#include <algorithm>
#include <limits>

namespace framestorm {
namespace {

// A frame as it is kept: with the method's ID, which is what oracles know it by.
struct KeptFrame {
  jmethodID method;
  void* pc;
  void* sp;
  int32_t bci;
  int8_t tier;
  uint8_t type;
};

constexpr const WalkerTraits& kTraits = traits_of(WalkerId::asgst_iterator);
static_assert(kTraits.layout ==
              FrameLayout{
                  .stride = sizeof(KeptFrame),
                  .method = offsetof(KeptFrame, method),
                  .bci = offsetof(KeptFrame, bci),
                  .pc = offsetof(KeptFrame, pc),
                  .sp = offsetof(KeptFrame, sp),
                  .type = offsetof(KeptFrame, type),
                  .tier = offsetof(KeptFrame, tier),
                  .types = {FrameType::none, FrameType::java, FrameType::inlined, FrameType::native,
                            FrameType::cpp, FrameType::native, FrameType::native},
              });
static_assert(kTraits.layout == traits_of(WalkerId::asgst_frame).layout);
static_assert(kTraits.layout == traits_of(WalkerId::asgst_queue).layout);
static_assert(kTraits.layout == traits_of(WalkerId::asgst_mark).layout);
static_assert(ASGST_FRAME_JAVA == 1 && ASGST_FRAME_JAVA_INLINED == 2 &&
              ASGST_FRAME_JAVA_NATIVE == 3 && ASGST_FRAME_NON_JAVA == 4 &&
              ASGST_FRAME_CONTINUATION == 5 && ASGST_FRAME_CONTINUATION_FROZEN == 6);
static_assert(kAsgstOptions == (ASGST_INCLUDE_NON_JAVA_FRAMES | ASGST_INCLUDE_NON_JAVA_THREADS |
                                ASGST_WALK_DURING_UNSAFE_STATES | ASGST_END_AT_CONTINUATION));

// Those of the table, in its order.
constexpr int32_t kErrors[] = {
    ASGST_NO_FRAME,         ASGST_NO_THREAD,         ASGST_THREAD_EXIT,
    ASGST_UNSAFE_STATE,     ASGST_NO_TOP_JAVA_FRAME, ASGST_STOPPED_BAD_STACK,
    ASGST_STOPPED_BAD_PC,   ASGST_STOPPED_BAD_FRAME, ASGST_STOPPED_NO_UNWIND_INFO,
    ASGST_STOPPED_TOO_DEEP, ASGST_CONTAINED_FAULT,   ASGST_SAMPLE_LEFT,
    ASGST_FAULTS_BLOCKED,   ASGST_FRAMES_FROZEN};
static_assert(std::ranges::equal(kTraits.errors, kErrors, {}, &WalkerError::code));

KeptFrame keep(const IteratorApi& api, const ASGST_Frame& frame) {
  constexpr int kMost = std::numeric_limits<int8_t>::max();
  const int tier = std::clamp(frame.comp_level, -kMost, kMost);
  return {frame.method == nullptr ? nullptr : api.method_id(frame.method),
          frame.pc,
          frame.sp,
          frame.bci,
          static_cast<int8_t>(tier),
          frame.type};
}

}  // namespace

// What the first handler of a walk is given.
struct IteratorWalker::Copying {
  IteratorWalker* walker;
  IteratorModel* model;  // null when there are no calls to check
  int32_t options;
  KeptFrame* frames;
  int32_t depth;
  int32_t count = 0;
  int end = ASGST_NO_FRAME;  // what came after the frames
  int calls = 0;

  void copy(ASGST_Iterator* iterator) {
    const IteratorApi& api = walker->api_;
    ASGST_Frame frame;
    while (count < depth || model != nullptr) {
      end = api.next(iterator, &frame);
      if (end != 1) break;
      if (model != nullptr && !model->record(frame)) model = nullptr;
      if (count < depth) frames[count++] = keep(api, frame);
    }
    if (end == ASGST_AT_FRAME_MARK) {
      copy(walker->rest(iterator, options));
    } else if (end != 1 && model != nullptr) {
      model->record_end(end);
    }
  }
  void copy(const Rest* rest) {
    if (rest == nullptr) {
      walker->sequence_.complain("mark-of-nobody", ComplaintScope::always, "the walk ended with",
                                 end, ASGST_NO_FRAME);
      return;
    }
    walker->facts_.put_together = true;
    for (const ASGST_Frame& frame : rest->frames) {
      end = 1;
      if (count == depth) return;
      frames[count++] = keep(walker->api_, frame);
    }
    end = rest->end;
  }
};

int32_t IteratorWalker::walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                             void* ucontext) noexcept {
  facts_.clear();
  const IteratorStart from = start(target, ucontext);
  sequence_.begin(from, &facts_);
  const bool has_calls = traits().iterator_calls && !target.iterator_calls.empty();
  Copying copying = {this, has_calls ? &sequence_.model() : nullptr, from.options,
                     reinterpret_cast<KeptFrame*>(frames), depth};
  const int result = from.run(
      api_,
      [](ASGST_Iterator* iterator, void* argument) {
        auto* const to = static_cast<Copying*>(argument);
        if (to->calls++ == 0) to->copy(iterator);
      },
      &copying);
  const int wanted_calls = result > 0 ? 1 : 0;
  if (copying.calls != wanted_calls) {
    sequence_.complain("iterator-handler-calls", ComplaintScope::always, "the handler was called",
                       copying.calls, wanted_calls);
  }
  // The state is the calling thread's.
  facts_.has_state = result > 0 && (target.same_thread || traits().borrows_identity());
  if (facts_.has_state) facts_.state = api_.thread_state();
  if (has_calls) sequence_.run(target.iterator_calls, result);
  facts_.has_kind = result > 0;
  facts_.kind = result;
  // With frozen frames left out it is the stack's end all the same.
  facts_.left_out_frozen = copying.end == ASGST_FRAMES_FROZEN;
  if (copying.end < 0 && !facts_.left_out_frozen) {
    facts_.stopped = error_name(copying.end).data();
  }
  if (result <= 0) return result;
  return copying.count > 0 || copying.end == 1 ? copying.count : copying.end;
}

}  // namespace framestorm
