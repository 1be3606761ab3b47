// AsyncGetCallTrace2 of asgct2.h.
#include <asgct2.h>

#include <array>

#include "harness/input/thread_state.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

constexpr FrameLayout kLayout = {
    .stride = sizeof(asgct2::CallFrame),
    .method = offsetof(asgct2::CallFrame, method_id),
    .bci = offsetof(asgct2::CallFrame, bci),
    .pc = offsetof(asgct2::CallFrame, machine_pc),
    .type = offsetof(asgct2::CallFrame, type),
    .tier = offsetof(asgct2::CallFrame, comp_level),
    .types = {FrameType::interpreted, FrameType::compiled, FrameType::inlined, FrameType::native,
              FrameType::cpp},
};
static_assert(asgct2::FRAME_INTERPRETED == 0 && asgct2::FRAME_JIT == 1 &&
              asgct2::FRAME_INLINE == 2 && asgct2::FRAME_NATIVE == 3 && asgct2::FRAME_CPP == 4);
static_assert(sizeof(asgct2::CallFrame) == 24);

// Those of AsyncGetCallTrace.
constexpr std::array<std::string_view, 11> kErrors = {
    "no_Java_frame",         "no_class_load", "GC_active",         "unknown_not_Java",
    "not_walkable_not_Java", "unknown_Java",  "not_walkable_Java", "unknown_state",
    "thread_exit",           "deopt",         "safepoint"};

class Asgct2 final : public Walker {
 public:
  using Function = void (*)(asgct2::CallTrace*, jint, void*);
  explicit Asgct2(const Exports& exports)
      : function_(reinterpret_cast<Function>(exports.require("AsyncGetCallTrace2"))) {}

  WalkerId id() const override { return WalkerId::asgct2; }
  std::string_view description() const override {
    return "AsyncGetCallTrace2: flat frames with pc, type and tier, C frames among them";
  }
  const FrameLayout& layout() const override { return kLayout; }
  const WalkFacts* facts() const override { return &facts_; }
  bool documented_error(int32_t code) const override { return code <= 0 && code >= -10; }
  std::string_view error_name(int32_t code) const override {
    return documented_error(code) ? kErrors[static_cast<size_t>(-code)] : "undocumented";
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
    facts_.clear();
    asgct2::CallTrace trace = {static_cast<JNIEnv*>(target.jni_env), 0,
                               reinterpret_cast<asgct2::CallFrame*>(frames), nullptr};
    function_(&trace, depth, ucontext);
    facts_.stopped = static_cast<const char*>(trace.frame_info);
    return trace.num_frames;
  }

 private:
  Function function_;
  WalkFacts facts_;
};

}  // namespace

std::unique_ptr<Walker> make_asgct2(const Exports& exports) {
  return std::make_unique<Asgct2>(exports);
}

}  // namespace framestorm
