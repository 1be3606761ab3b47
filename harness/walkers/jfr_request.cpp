// JfrSampleRequestBuilder of JFR, by jfrwalk.h: the one frame it gives is the request, and there is
// none in a biased one.
#include <jfrwalk.h>

#include <algorithm>

#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

static_assert(traits_of(WalkerId::jfr_request).layout == FrameLayout{
                                                             .stride = sizeof(JfrWalk_Request),
                                                             .bci = offsetof(JfrWalk_Request, bci),
                                                             .pc = offsetof(JfrWalk_Request, pc),
                                                             .sp = offsetof(JfrWalk_Request, sp),
                                                             .bcp = offsetof(JfrWalk_Request, bcp),
                                                         });

class JfrRequest final : public Walker {
 public:
  explicit JfrRequest(const Exports& exports)
      : Walker(WalkerId::jfr_request), function_(exports.require(id())) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const bool java = (target.options & kJavaSampler) != 0;
    JfrWalk_Request request = {};
    const jint result =
        function_(ucontext, java ? JFR_WALK_JAVA_SAMPLER : JFR_WALK_CPU_TIME_SAMPLER, &request);
    if (result > 0 && depth > 0) *reinterpret_cast<JfrWalk_Request*>(frames) = request;
    return std::min(result, std::max(depth, 0));
  }

 private:
  decltype(&JfrWalk_BuildRequest) function_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::jfr_request>, const Exports& exports) {
  return std::make_unique<JfrRequest>(exports);
}

}  // namespace framestorm
