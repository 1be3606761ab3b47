// JVMTI GetStackTrace: the reference. It stops the victim at a safepoint or handshake itself, so it
// sees a moment after the halt; see oracles/truth.h for what may be compared.
#include <vector>

#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

struct ReferenceFrame {
  jmethodID method;
  int32_t bci;
};

static_assert(traits_of(WalkerId::gst).layout ==
              FrameLayout{.stride = sizeof(ReferenceFrame),
                          .method = offsetof(ReferenceFrame, method),
                          .bci = offsetof(ReferenceFrame, bci)});

class Gst final : public Walker {
 public:
  explicit Gst(jvmtiEnv* jvmti) : Walker(WalkerId::gst), jvmti_(jvmti) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void*) noexcept override {
    if (target.thread == nullptr) return -10;
    std::vector<jvmtiFrameInfo> buffer(static_cast<size_t>(depth < 0 ? 0 : depth));
    jint count = 0;
    const jvmtiError error = jvmti_->GetStackTrace(target.thread, 0, depth, buffer.data(), &count);
    if (error != JVMTI_ERROR_NONE) return -static_cast<int32_t>(error);
    auto* out = reinterpret_cast<ReferenceFrame*>(frames);
    for (jint i = 0; i < count; ++i) {
      const jvmtiFrameInfo& info = buffer[static_cast<size_t>(i)];
      out[i] = {info.method, static_cast<int32_t>(info.location)};
    }
    return count;
  }

 private:
  jvmtiEnv* jvmti_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::gst>, const Exports& exports) {
  if (exports.jvmti == nullptr) throw SetupError(exports.library + " has no JVMTI");
  return std::make_unique<Gst>(exports.jvmti);
}

}  // namespace framestorm
