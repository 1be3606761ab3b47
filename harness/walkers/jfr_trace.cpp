// JfrStackTrace of JFR, by jfrwalk.h.
#include <jfrwalk.h>

#include <algorithm>

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
        function_(reinterpret_cast<decltype(function_)>(exports.require(id()))) {
    reinterpret_cast<decltype(&JfrWalk_Initialize)>(exports.require("JfrWalk_Initialize"))();
  }

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const bool stale = (target.options & kStaleSample) != 0;
    return function_(ucontext, stale ? 1 : 0, reinterpret_cast<JfrWalk_Frame*>(frames), depth);
  }

 private:
  decltype(&JfrWalk_RecordTrace) function_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::jfr_trace>, const Exports& exports) {
  return std::make_unique<JfrTrace>(exports);
}

}  // namespace framestorm
