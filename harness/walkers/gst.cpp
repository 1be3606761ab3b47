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

constexpr FrameLayout kLayout = {sizeof(ReferenceFrame), offsetof(ReferenceFrame, method),
                                 offsetof(ReferenceFrame, bci), -1, -1};

class Gst final : public Walker {
 public:
  explicit Gst(jvmtiEnv* jvmti) : jvmti_(jvmti) {}

  WalkerId id() const override { return WalkerId::gst; }
  std::string_view description() const override {
    return "JVMTI GetStackTrace, the reference; safepoint only, never mutated";
  }
  const FrameLayout& layout() const override { return kLayout; }
  bool needs_running_vm() const override { return true; }
  // Negated JVMTI errors: thread not alive (15), invalid thread (10).
  bool documented_error(int32_t code) const override { return code == -15 || code == -10; }
  std::string_view error_name(int32_t code) const override {
    return code == -15 ? "thread_not_alive" : code == -10 ? "invalid_thread" : "undocumented";
  }
  bool error_agrees(int32_t, uint32_t) const override { return true; }
  // Native methods have bci -1.
  int32_t lowest_bci() const override { return -1; }

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

std::unique_ptr<Walker> make_gst(const Jvm& jvm) { return std::make_unique<Gst>(jvm.jvmti()); }

}  // namespace framestorm
