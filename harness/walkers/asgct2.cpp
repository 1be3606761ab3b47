// AsyncGetCallTrace2 of asgct2.h, in both of its layouts.
#include <asgct2.h>

#include "harness/walkers/complaint.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

namespace packed = asgct2::packed;

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

static_assert(traits_of(WalkerId::asgct2_packed).layout ==
              FrameLayout{
                  .stride = sizeof(packed::CallFrame),
                  .method = offsetof(packed::JavaFrame, method_id),
                  .bci = offsetof(packed::JavaFrame, bci),
                  .pc = offsetof(packed::NonJavaFrame, machine_pc),
                  .type = offsetof(packed::JavaFrame, type),
                  .tier = offsetof(packed::JavaFrame, comp_level),
                  .bci_size = sizeof(packed::JavaFrame::bci),
                  .unnamed_natives = true,
                  .types = {FrameType::none, FrameType::java, FrameType::inlined, FrameType::native,
                            FrameType::stub, FrameType::cpp},
              });
static_assert(traits_of(WalkerId::asgct2_packed).layout.is_union());
static_assert(packed::FRAME_JAVA == 1 && packed::FRAME_JAVA_INLINED == 2 &&
              packed::FRAME_NATIVE == 3 && packed::FRAME_STUB == 4 && packed::FRAME_CPP == 5);

template <typename CallTrace, typename CallFrame>
class Asgct2 final : public Walker {
 public:
  Asgct2(WalkerId which, const Exports& exports)
      : Walker(which), function_(exports.require(which)) {}

  const WalkFacts* facts() const override { return &facts_; }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    facts_.clear();
    CallTrace trace = {static_cast<JNIEnv*>(target.jni_env), kNoResult,
                       reinterpret_cast<CallFrame*>(frames), const_cast<char*>(kNoInfo)};
    function_(&trace, depth, ucontext);
    facts_.stopped = written_info(trace.frame_info, &facts_);
    return trace.num_frames;
  }

 private:
  using Function = void (*)(CallTrace* trace, jint depth, void* ucontext);
  Function function_;
  WalkFacts facts_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgct2>, const Exports& exports) {
  return std::make_unique<Asgct2<asgct2::CallTrace, asgct2::CallFrame>>(WalkerId::asgct2, exports);
}

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgct2_packed>, const Exports& exports) {
  return std::make_unique<Asgct2<packed::CallTrace, packed::CallFrame>>(WalkerId::asgct2_packed,
                                                                        exports);
}

}  // namespace framestorm
