// AsyncGetStackTrace of profile.h, and its two variants that are told which thread to walk. The
// files that include profile.h must not include profile2.h, which has the same names.
#include <profile.h>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "harness/walkers/complaint.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

static_assert(traits_of(WalkerId::asgst).layout ==
              FrameLayout{
                  .stride = sizeof(ASGST_CallFrame),
                  .method = offsetof(ASGST_JavaFrame, method_id),
                  .bci = offsetof(ASGST_JavaFrame, bci),
                  .pc = offsetof(ASGST_NonJavaFrame, pc),
                  .type = offsetof(ASGST_JavaFrame, type),
                  .tier = offsetof(ASGST_JavaFrame, comp_level),
                  .bci_size = sizeof(uint16_t),
                  .types = {FrameType::none, FrameType::java, FrameType::inlined, FrameType::native,
                            FrameType::cpp, FrameType::native, FrameType::native},
              });
static_assert(traits_of(WalkerId::asgst).layout.is_union());
static_assert(ASGST_FRAME_JAVA == 1 && ASGST_FRAME_JAVA_INLINED == 2 &&
              ASGST_FRAME_JAVA_NATIVE == 3 && ASGST_FRAME_CPP == 4 &&
              ASGST_FRAME_CONTINUATION == 5 && ASGST_FRAME_CONTINUATION_FROZEN == 6);
static_assert(sizeof(ASGST_CallFrame) == 16, "JEP 435: no more room than AsyncGetCallTrace takes");
static_assert(kWalkSameThread == ASGST_WALK_SAME_THREAD &&
              kAsgstOptions == (ASGST_INCLUDE_C_FRAMES | ASGST_INCLUDE_NON_JAVA_THREADS |
                                ASGST_WALK_DURING_UNSAFE_STATES | ASGST_END_AT_CONTINUATION));

// Those of the table, in its order.
constexpr int32_t kErrors[] = {
    ASGST_NO_JAVA_FRAME, ASGST_NO_CLASS_LOAD,     ASGST_GC_ACTIVE,       ASGST_UNKNOWN_NOT_JAVA,
    ASGST_UNKNOWN_JAVA,  ASGST_NOT_WALKABLE_JAVA, ASGST_UNKNOWN_STATE,   ASGST_THREAD_EXIT,
    ASGST_DEOPT,         ASGST_THREAD_NOT_JAVA,   ASGST_NO_THREAD,       ASGST_UNSAFE_STATE,
    ASGST_WRONG_STATE,   ASGST_WRONG_KIND,        ASGST_CONTAINED_FAULT, ASGST_FAULTS_BLOCKED};
static_assert(std::ranges::equal(traits_of(WalkerId::asgst).errors, kErrors, {},
                                 &WalkerError::code));
static_assert(traits_of(WalkerId::asgst).contained_error == ASGST_CONTAINED_FAULT);

// The option says whose thread it is: the caller's choice of mode, not the input's.
uint32_t options_of(const WalkTarget& target) {
  const uint32_t options = target.options & ~kWalkSameThread;
  return target.same_thread ? options | kWalkSameThread : options;
}

template <WalkerId kId>
class Asgst final : public Walker {
  static constexpr FindsVictim kFinds = traits_of(kId).finds_victim;
  using Function =
      std::conditional_t<kFinds == FindsVictim::by_tid, decltype(&AsyncGetStackTraceOfThread),
                         decltype(&AsyncGetStackTrace)>;
  static_assert(std::is_same_v<decltype(&AsyncGetStackTrace), decltype(&AsyncGetStackTraceOfEnv)>);

 public:
  explicit Asgst(const Exports& exports)
      : Walker(kId),
        function_(exports.require(kId)),
        contained_faults_(exports.require("AsyncGetStackTraceContainedFaults")) {}

  const WalkFacts* facts() const override { return &facts_; }

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    facts_.clear();
    // What is in it is known to nobody before the walk, but for the masks.
    ASGST_CallTrace trace = {reinterpret_cast<JNIEnv*>(&facts_),
                             kNoResult,
                             target.accepted_kinds,
                             static_cast<jint>(target.accepted_states),
                             reinterpret_cast<ASGST_CallFrame*>(frames),
                             const_cast<char*>(kNoInfo)};
    const jlong contained = contained_faults_();
    if constexpr (kFinds == FindsVictim::by_tid) {
      function_(&trace, depth, ucontext, options_of(target), target.asked_tid);
    } else {
      if (kFinds == FindsVictim::by_env) trace.env_id = static_cast<JNIEnv*>(target.jni_env);
      function_(&trace, depth, ucontext, options_of(target));
    }
    facts_.contained_faults = contained_faults_() - contained;
    // With other errors they say nothing.
    facts_.has_kind = trace.num_frames > 0 || trace.num_frames == ASGST_WRONG_KIND;
    facts_.kind = trace.kind;
    facts_.has_state = trace.num_frames > 0 || trace.num_frames == ASGST_WRONG_STATE;
    facts_.state = trace.state;
    facts_.has_env = trace.num_frames > 0;
    facts_.env = trace.env_id;
    const char* const info = written_info(trace.frame_info, &facts_);
    facts_.left_out_frozen = info != nullptr && std::string_view(info) == ASGST_FRAMES_FROZEN;
    if (!facts_.left_out_frozen) facts_.stopped = info;
    return trace.num_frames;
  }

 private:
  Function function_;
  decltype(&AsyncGetStackTraceContainedFaults) contained_faults_;
  WalkFacts facts_;
};

}  // namespace

std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst>, const Exports& exports) {
  return std::make_unique<Asgst<WalkerId::asgst>>(exports);
}
std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst_env>, const Exports& exports) {
  return std::make_unique<Asgst<WalkerId::asgst_env>>(exports);
}
std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgst_thread>, const Exports& exports) {
  return std::make_unique<Asgst<WalkerId::asgst_thread>>(exports);
}

}  // namespace framestorm
