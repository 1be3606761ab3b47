// AsyncGetCallTrace: src/hotspot/share/prims/forte.cpp. Not declared in any JDK header; the
// structures below are its documented ABI.
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

struct CallFrame {
  jint lineno;  // bci, or -3 for a native method
  jmethodID method_id;
};

struct CallTrace {
  JNIEnv* env_id;
  jint num_frames;
  CallFrame* frames;
};

static_assert(traits_of(WalkerId::asgct).layout ==
              FrameLayout{.stride = sizeof(CallFrame),
                          .method = offsetof(CallFrame, method_id),
                          .bci = offsetof(CallFrame, lineno)});

class Asgct final : public Walker {
 public:
  explicit Asgct(const Exports& exports)
      : Walker(WalkerId::asgct), function_(exports.require(id())) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    CallTrace trace = {static_cast<JNIEnv*>(target.jni_env), kNoResult,
                       reinterpret_cast<CallFrame*>(frames)};
    function_(&trace, depth, ucontext);
    return trace.num_frames;
  }

 private:
  void (*function_)(CallTrace*, jint, void*);
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgct>, const Exports& exports) {
  return std::make_unique<Asgct>(exports);
}

}  // namespace framestorm
