// JfrStackTrace of JFR, by jfrwalk.h.
#include <jfrwalk.h>

#include <algorithm>

#include "harness/victim/context.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

static_assert(traits_of(WalkerId::jfr_trace).layout ==
              FrameLayout{
                  .stride = sizeof(JfrWalk_Frame),
                  .method = offsetof(JfrWalk_Frame, method_id),
                  .bci = offsetof(JfrWalk_Frame, bci),
                  .type = offsetof(JfrWalk_Frame, type),
                  .types = {FrameType::interpreted, FrameType::compiled, FrameType::inlined,
                            FrameType::native},
              });
static_assert(JFR_WALK_FRAME_INTERPRETER == 0 && JFR_WALK_FRAME_JIT == 1 &&
              JFR_WALK_FRAME_INLINE == 2 && JFR_WALK_FRAME_NATIVE == 3);
// Those of the table, in its order; jfr-request's too.
constexpr int32_t kErrors[] = {
    JFR_WALK_BIASED,         JFR_WALK_NO_THREAD,          JFR_WALK_NO_CONTEXT,
    JFR_WALK_WRONG_STATE,    JFR_WALK_NO_LAST_JAVA_FRAME, JFR_WALK_INVALID_STACK_TRACE,
    JFR_WALK_NOT_INITIALIZED};
static_assert(std::ranges::equal(traits_of(WalkerId::jfr_trace).errors, kErrors, {},
                                 &WalkerError::code));

class JfrTrace final : public Walker {
 public:
  explicit JfrTrace(const Exports& exports)
      : Walker(WalkerId::jfr_trace),
        function_(exports.require(id())),
        build_(exports.require("JfrWalk_BuildRequest")),
        answer_(exports.require("JfrWalk_AnswerAtPoll")) {
    const decltype(&JfrWalk_Initialize) initialize = exports.require("JfrWalk_Initialize");
    initialize();
  }

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const bool stale = (target.options & kStaleSample) != 0;
    has_request_ = false;
    const int32_t result =
        function_(ucontext, stale ? 1 : 0, reinterpret_cast<JfrWalk_Frame*>(frames), depth);
    // A thread in Java answers when it runs on.
    if (result == JFR_WALK_WRONG_STATE &&
        !(stale && has_no_frame(*static_cast<ucontext_t*>(ucontext)))) {
      const int sampler = stale ? JFR_WALK_REGISTERS : JFR_WALK_CPU_TIME_SAMPLER;
      has_request_ = build_(ucontext, sampler, &request_) >= JFR_WALK_BIASED;
    }
    return result;
  }

  bool has_request() const override { return has_request_; }
  int32_t requested_bci() const override { return request_.bci < 0 ? kNoBci : request_.bci; }
  std::optional<int32_t> answer(JNIEnv* env, void* java_thread, std::byte* frames,
                                int32_t depth) override {
    const int32_t result =
        answer_(env, java_thread, &request_, reinterpret_cast<JfrWalk_Frame*>(frames), depth);
    if (result == JFR_WALK_CONTAINED_FAULT) return std::nullopt;
    return result;
  }

 private:
  // What is noted of a stale sample in the interpreter is looked up below its frame pointer.
  static bool has_no_frame(const ucontext_t& context) {
    constexpr uintptr_t kFirstPage = 4096;
    return get_register(context, Register::fp) < kFirstPage;
  }

  decltype(&JfrWalk_RecordTrace) function_;
  decltype(&JfrWalk_BuildRequest) build_;
  decltype(&JfrWalk_AnswerAtPoll) answer_;
  JfrWalk_Request request_ = {};
  bool has_request_ = false;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::jfr_trace>, const Exports& exports) {
  return std::make_unique<JfrTrace>(exports);
}

}  // namespace framestorm
