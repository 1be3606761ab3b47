// AsyncGetStackTrace of profile.h, and its two variants that are told which thread to walk. The
// files that include profile.h must not include profile2.h, which has the same names.
#include <profile.h>

#include <algorithm>
#include <utility>

#include "harness/input/thread_state.h"
#include "harness/input/walker_traits.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

constexpr FrameLayout kLayout = {
    .stride = sizeof(ASGST_CallFrame),
    .method = offsetof(ASGST_JavaFrame, method_id),
    .bci = offsetof(ASGST_JavaFrame, bci),
    .pc = offsetof(ASGST_NonJavaFrame, pc),
    .type = offsetof(ASGST_JavaFrame, type),
    .tier = offsetof(ASGST_JavaFrame, comp_level),
    .bci_size = sizeof(uint16_t),
    .types = {FrameType::none, FrameType::java, FrameType::inlined, FrameType::native,
              FrameType::cpp},
};
static_assert(kLayout.is_union());
static_assert(ASGST_FRAME_JAVA == 1 && ASGST_FRAME_JAVA_INLINED == 2 &&
              ASGST_FRAME_JAVA_NATIVE == 3 && ASGST_FRAME_CPP == 4);
static_assert(sizeof(ASGST_CallFrame) == 16, "JEP 435: no more room than AsyncGetCallTrace takes");
static_assert(kWalkSameThread == ASGST_WALK_SAME_THREAD &&
              kAsgstOptions == (ASGST_INCLUDE_C_FRAMES | ASGST_INCLUDE_NON_JAVA_THREADS |
                                ASGST_WALK_DURING_UNSAFE_STATES));

constexpr std::pair<int32_t, std::string_view> kErrors[] = {
    {ASGST_NO_JAVA_FRAME, "no_Java_frame"},
    {ASGST_NO_CLASS_LOAD, "no_class_load"},
    {ASGST_GC_ACTIVE, "GC_active"},
    {ASGST_UNKNOWN_NOT_JAVA, "unknown_not_Java"},
    {ASGST_UNKNOWN_JAVA, "unknown_Java"},
    {ASGST_NOT_WALKABLE_JAVA, "not_walkable_Java"},
    {ASGST_UNKNOWN_STATE, "unknown_state"},
    {ASGST_THREAD_EXIT, "thread_exit"},
    {ASGST_DEOPT, "deopt"},
    {ASGST_THREAD_NOT_JAVA, "thread_not_Java"},
    {ASGST_NO_THREAD, "no_thread"},
    {ASGST_UNSAFE_STATE, "unsafe_state"},
    {ASGST_WRONG_STATE, "wrong_state"},
    {ASGST_WRONG_KIND, "wrong_kind"},
    {ASGST_CONTAINED_FAULT, "contained_fault"},
};

const std::string_view* find_error(int32_t code) {
  const auto* found =
      std::ranges::find(kErrors, code, &std::pair<int32_t, std::string_view>::first);
  return found == std::end(kErrors) ? nullptr : &found->second;
}

// What the three have in common.
class Asgst : public Walker {
 public:
  explicit Asgst(const Exports& exports)
      : contained_faults_(reinterpret_cast<decltype(contained_faults_)>(
            exports.require("AsyncGetStackTraceContainedFaults"))) {}

  const FrameLayout& layout() const override { return kLayout; }
  bool borrows_identity() const override { return false; }
  const WalkFacts* facts() const override { return &facts_; }
  std::optional<int32_t> contained_error() const override { return ASGST_CONTAINED_FAULT; }
  bool documented_error(int32_t code) const override { return find_error(code) != nullptr; }
  std::string_view error_name(int32_t code) const override {
    const std::string_view* name = find_error(code);
    return name == nullptr ? "undocumented" : *name;
  }
  bool error_agrees(int32_t code, uint32_t thread_state) const override {
    if (code == ASGST_UNKNOWN_JAVA || code == ASGST_NOT_WALKABLE_JAVA) {
      return is_in_java(thread_state);
    }
    if (code == ASGST_UNKNOWN_NOT_JAVA) return is_outside_java(thread_state);
    if (code == ASGST_UNKNOWN_STATE) return !is_legal_thread_state(thread_state);
    return true;
  }
  int32_t lowest_bci() const override { return kNoBci; }
  std::optional<int32_t> native_bci() const override { return kNoBci; }

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    facts_.clear();
    ASGST_CallTrace trace = {nullptr,
                             0,
                             target.accepted_kinds,
                             static_cast<jint>(target.accepted_states),
                             reinterpret_cast<ASGST_CallFrame*>(frames),
                             nullptr};
    const jlong contained = contained_faults_();
    call(&trace, target, depth, ucontext);
    facts_.contained_faults = contained_faults_() - contained;
    // With other errors they say nothing.
    facts_.has_kind = trace.num_frames > 0 || trace.num_frames == ASGST_WRONG_KIND;
    facts_.kind = trace.kind;
    facts_.has_state = trace.num_frames > 0 || trace.num_frames == ASGST_WRONG_STATE;
    facts_.state = trace.state;
    facts_.has_env = trace.num_frames > 0;
    facts_.env = trace.env_id;
    facts_.stopped = static_cast<const char*>(trace.frame_info);
    return trace.num_frames;
  }

 protected:
  virtual void call(ASGST_CallTrace* trace, const WalkTarget& target, int32_t depth,
                    void* ucontext) noexcept = 0;

 private:
  decltype(&AsyncGetStackTraceContainedFaults) contained_faults_;
  WalkFacts facts_;
};

// The option says whose thread it is: the caller's choice of mode, not the input's.
uint32_t options_of(const WalkTarget& target) {
  const uint32_t options = target.options & ~kWalkSameThread;
  return target.same_thread ? options | kWalkSameThread : options;
}

class AsgstByContext final : public Asgst {
 public:
  explicit AsgstByContext(const Exports& exports)
      : Asgst(exports),
        function_(reinterpret_cast<decltype(function_)>(exports.require("AsyncGetStackTrace"))) {}
  WalkerId id() const override { return WalkerId::asgst; }
  std::string_view description() const override {
    return "AsyncGetStackTrace; in separate-thread mode it finds the victim by the context's sp";
  }

 private:
  void call(ASGST_CallTrace* trace, const WalkTarget& target, int32_t depth,
            void* ucontext) noexcept override {
    function_(trace, depth, ucontext, options_of(target));
  }
  decltype(&AsyncGetStackTrace) function_;
};

class AsgstByEnv final : public Asgst {
 public:
  explicit AsgstByEnv(const Exports& exports)
      : Asgst(exports),
        function_(
            reinterpret_cast<decltype(function_)>(exports.require("AsyncGetStackTraceOfEnv"))) {}
  WalkerId id() const override { return WalkerId::asgst_env; }
  std::string_view description() const override {
    return "AsyncGetStackTraceOfEnv, the victim told by its JNIEnv; separate-thread only";
  }

 private:
  void call(ASGST_CallTrace* trace, const WalkTarget& target, int32_t depth,
            void* ucontext) noexcept override {
    trace->env_id = static_cast<JNIEnv*>(target.jni_env);
    function_(trace, depth, ucontext, options_of(target));
  }
  decltype(&AsyncGetStackTraceOfEnv) function_;
};

class AsgstByThread final : public Asgst {
 public:
  explicit AsgstByThread(const Exports& exports)
      : Asgst(exports),
        function_(
            reinterpret_cast<decltype(function_)>(exports.require("AsyncGetStackTraceOfThread"))) {}
  WalkerId id() const override { return WalkerId::asgst_thread; }
  std::string_view description() const override {
    return "AsyncGetStackTraceOfThread, the victim told by its OS thread id; separate-thread only";
  }

 private:
  void call(ASGST_CallTrace* trace, const WalkTarget& target, int32_t depth,
            void* ucontext) noexcept override {
    function_(trace, depth, ucontext, options_of(target), target.asked_tid);
  }
  decltype(&AsyncGetStackTraceOfThread) function_;
};

}  // namespace

std::unique_ptr<Walker> make_asgst(const Exports& exports) {
  return std::make_unique<AsgstByContext>(exports);
}
std::unique_ptr<Walker> make_asgst_env(const Exports& exports) {
  return std::make_unique<AsgstByEnv>(exports);
}
std::unique_ptr<Walker> make_asgst_thread(const Exports& exports) {
  return std::make_unique<AsgstByThread>(exports);
}

}  // namespace framestorm
