// AsyncGetCallTrace2 of asgct2.h.
#include <asgct2.h>

#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

static_assert(traits_of(WalkerId::asgct2).layout ==
              FrameLayout{
                  .stride = sizeof(asgct2::CallFrame),
                  .method = offsetof(asgct2::CallFrame, method_id),
                  .bci = offsetof(asgct2::CallFrame, bci),
                  .pc = offsetof(asgct2::CallFrame, machine_pc),
                  .type = offsetof(asgct2::CallFrame, type),
                  .tier = offsetof(asgct2::CallFrame, comp_level),
                  .types = {FrameType::interpreted, FrameType::compiled, FrameType::inlined,
                            FrameType::native, FrameType::cpp},
              });
static_assert(asgct2::FRAME_INTERPRETED == 0 && asgct2::FRAME_JIT == 1 &&
              asgct2::FRAME_INLINE == 2 && asgct2::FRAME_NATIVE == 3 && asgct2::FRAME_CPP == 4);

class Asgct2 final : public Walker {
 public:
  explicit Asgct2(const Exports& exports)
      : Walker(WalkerId::asgct2),
        function_(reinterpret_cast<decltype(function_)>(exports.require(id()))) {}

  const WalkFacts* facts() const override { return &facts_; }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    facts_.clear();
    asgct2::CallTrace trace = {static_cast<JNIEnv*>(target.jni_env), 0,
                               reinterpret_cast<asgct2::CallFrame*>(frames), nullptr};
    function_(&trace, depth, ucontext);
    facts_.stopped = static_cast<const char*>(trace.frame_info);
    return trace.num_frames;
  }

 private:
  decltype(&AsyncGetCallTrace2) function_;
  WalkFacts facts_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgct2>, const Exports& exports) {
  return std::make_unique<Asgct2>(exports);
}

}  // namespace framestorm
