// AsyncGetCallTrace: src/hotspot/share/prims/forte.cpp. Not declared in any JDK header; the
// structures and error codes below are its documented ABI.
#include <array>

#include "harness/input/thread_state.h"
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

constexpr FrameLayout kLayout = {sizeof(CallFrame), offsetof(CallFrame, method_id),
                                 offsetof(CallFrame, lineno), -1, -1};

// ticks_* in forte.cpp, by their negated value.
constexpr std::array<std::string_view, 11> kErrors = {
    "no_Java_frame",         "no_class_load", "GC_active",         "unknown_not_Java",
    "not_walkable_not_Java", "unknown_Java",  "not_walkable_Java", "unknown_state",
    "thread_exit",           "deopt",         "safepoint"};

class Asgct final : public Walker {
 public:
  using Function = void (*)(CallTrace*, jint, void*);
  explicit Asgct(Function function) : function_(function) {}

  WalkerId id() const override { return WalkerId::asgct; }
  std::string_view description() const override {
    return "AsyncGetCallTrace of the JDK under test";
  }
  const FrameLayout& layout() const override { return kLayout; }
  bool documented_error(int32_t code) const override { return code >= -10; }
  std::string_view error_name(int32_t code) const override {
    return documented_error(code) && code <= 0 ? kErrors[static_cast<size_t>(-code)]
                                               : "undocumented";
  }
  bool error_agrees(int32_t code, uint32_t thread_state) const override {
    if (code == -5 || code == -6) return is_in_java(thread_state);
    if (code == -3 || code == -4) return is_outside_java(thread_state);
    if (code == -7) return !is_legal_thread_state(thread_state);
    return true;
  }
  int32_t lowest_bci() const override { return -3; }
  std::optional<int32_t> native_bci() const override { return -3; }

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    CallTrace trace = {static_cast<JNIEnv*>(target.jni_env), 0,
                       reinterpret_cast<CallFrame*>(frames)};
    function_(&trace, depth, ucontext);
    return trace.num_frames;
  }

 private:
  Function function_;
};

}  // namespace

std::unique_ptr<Walker> make_asgct(const Jvm& jvm) {
  const auto function = reinterpret_cast<Asgct::Function>(jvm.symbol("AsyncGetCallTrace"));
  if (function == nullptr) {
    throw SetupError(jvm.library_path().string() +
                     " does not export AsyncGetCallTrace: choose another JDK with --jdk");
  }
  return std::make_unique<Asgct>(function);
}

}  // namespace framestorm
