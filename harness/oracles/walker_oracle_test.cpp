// The oracles of the walkers that are built into the instrumented JDK, on any JDK: stand-ins walk
// with AsyncGetCallTrace's frames, rightly or with one thing wrong.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/victim/native_unwinder.h"
#include "harness/victim/scenario.h"
#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;
using stand_in::Control;
using stand_in::Defect;
using stand_in::Type;

// Whose stack the stand-ins walk.
struct WalkedThread {
  Walker* asgct = nullptr;
  WalkTarget target;
  ucontext_t context;  // that was given last: walks from a frame get none
};
WalkedThread walked_thread;
// If not null, HotSpot's note that a collection has stopped the world, which the stand-ins do not ask.
bool* collecting = nullptr;
// The top frame as if it were inlined into the next.
bool top_is_inlined = false;
// The top frame once more, as if it were inlined into itself.
bool one_more_inlined = false;
// One more frame, of a method that is being entered.
bool one_more_entered = false;
int32_t bci_of_entered = 0;
// If not null, one more frame, of this native method; not for queues.
jmethodID one_more_native = nullptr;
const Control* control = nullptr;
// The top frame's caller left out.
bool caller_missing = false;
// The top frame without method and bci.
bool top_is_nothing = false;
// If not null, where the frame of C at the top stands.
uintptr_t c_frame_pc = 0;
// Where frames of native methods stand: in code of the interpreter, which tells no method.
uintptr_t native_pc = 0;
// If not null, where the top frame stands.
uintptr_t top_pc = 0;
// If not null, the top frame as if it stood there, at its first bytecode, with nothing on the
// stack.
uintptr_t top_without_stack = 0;
// If not null, a stub between the top frame and the frame of C, which stands there and has nothing on
// the stack.
uintptr_t stub_without_stack = 0;

// Where the made-up frames of C stand.
const auto c_code = reinterpret_cast<uintptr_t>(&abort) + 1;

// Of C and C++, which the victim was halted in; innermost first.
std::vector<NativeFrame> c_frames;
// In place of the one below the Java frames.
std::vector<NativeFrame> below_java;

// Those, AsyncGetCallTrace's frames with made-up registers, and one more of C.
size_t stack_of_victim(void* context, stand_in::Frame* out, size_t room) {
  struct RealFrame {
    jint bci;
    jmethodID method;
  };
  static std::array<RealFrame, 500> frames;
  ucontext_t& last = walked_thread.context;
  if (context != nullptr) copy_context(*static_cast<ucontext_t*>(context), &last);
  const ThreadIdentity::Scoped as_victim(Jvm::get().identity(), walked_thread.target.java_thread);
  if (collecting != nullptr) *collecting = false;
  const int32_t count = walked_thread.asgct->walk(
      walked_thread.target, reinterpret_cast<std::byte*>(frames.data()), frames.size(), &last);
  if (collecting != nullptr) *collecting = true;
  const auto java = static_cast<size_t>(std::max(count, 0));
  size_t first = c_frames.size();  // Java frame
  if (java == 0 || first + java + 4 > room) return 0;
  // A walk from the context's registers begins with the frame that has its sp.
  uintptr_t sp = get_register(last, Register::sp);
  for (size_t i = 0; i < first; ++i) {
    out[i] = {.tier = -1, .type = Type::cpp, .pc = c_frames[i].pc, .sp = c_frames[i].sp};
    sp = c_frames[i].sp + 16;
  }
  if (first == 0 && (c_frame_pc != 0 || stub_without_stack != 0)) {
    out[first++] = {.tier = -1, .type = Type::cpp, .pc = c_code, .sp = sp - 8};
  }
  if (c_frame_pc != 0) out[0].pc = c_frame_pc;
  for (size_t i = 0; i <= java; ++i) {
    const bool c = i == java;
    const RealFrame& frame = frames[c ? 0 : i];
    stand_in::Frame& to = out[first + i];
    to = {};
    to.type = c ? Type::cpp : frame.bci == -3 ? Type::native : Type::java;
    to.method = c ? nullptr : frame.method;
    to.bci = c || frame.bci < 0 ? -1 : frame.bci;
    to.tier = c ? -1 : 0;
    to.pc = c ? c_code : to.type == Type::native ? native_pc : 0x200 + i;
    to.sp = sp + 32 * i;
  }
  stand_in::Frame* const top = out + first;
  if (top_is_inlined) {
    top[0].type = Type::inlined;
    top[0].tier = top[1].tier = 4;
    top[1].sp = top[0].sp;
  }
  if (top_is_nothing) {
    top[0].method = nullptr;
    top[0].bci = -1;
  }
  if (top_pc != 0) top[0].pc = top_pc;
  if (top_without_stack != 0) {
    top[0].pc = top_without_stack;
    top[0].bci = 0;
    top[1].sp = top[0].sp;
  }
  stand_in::Frame* end = top + java + 1;
  if (caller_missing) {
    std::copy(top + 2, end, top + 1);
    --end;
  }
  const bool native = one_more_native != nullptr && !control->in_sample;
  if (one_more_inlined || one_more_entered || native || stub_without_stack != 0) {
    std::copy_backward(top, end, end + 1);
    ++end;
  }
  if (stub_without_stack != 0) {
    top[0] = {.tier = -1, .type = Type::cpp, .pc = stub_without_stack, .sp = top[1].sp};
  }
  if (!below_java.empty()) --end;
  for (const NativeFrame& frame : below_java) {
    *end++ = {.tier = -1, .type = Type::cpp, .pc = frame.pc, .sp = frame.sp};
  }
  if (native) {
    top[0].method = one_more_native;
    top[0].bci = -1;
    top[0].type = Type::native;
  }
  if (one_more_entered) {
    top[0].method = end[-2].method;
    top[0].bci = bci_of_entered;
  }
  if (one_more_inlined) {
    top[0].type = Type::inlined;
    top[0].tier = top[1].tier = 4;
  }
  return static_cast<size_t>(end - out);
}

class WalkerOracleTest : public JvmTest {
 protected:
  void start(const std::vector<ScenarioId>& scenarios) {
    JvmTest::start(scenarios);
    if (HasFatalFailure()) return;
    void* const library = dlopen(FRAMESTORM_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    control_ = reinterpret_cast<Control* (*)()>(dlsym(library, "framestorm_stand_in"))();
    control = control_;
    one_more_native = nullptr;
    const Exports exports("stand-in", [library](const char* name) { return dlsym(library, name); });
    for (const WalkerId id : kAddedWalkers) executor().replace_walker(make_walker(id, exports));
    walked_thread.asgct = executor().walker(WalkerId::asgct);
    top_is_inlined = one_more_inlined = one_more_entered = caller_missing = top_is_nothing = false;
    top_pc = top_without_stack = stub_without_stack = c_frame_pc = 0;
    below_java.clear();
  }

  // The test is skipped where the JDK has no such scenario.
  void start_if_had(ScenarioId scenario) {
    start({scenario});
    if (HasFatalFailure() || session().jvm().feature() >= scenario_info(scenario).min_feature)
      return;
    GTEST_SKIP() << "this JDK has no " << name_of(scenario);
  }

  // The victim of `scenario` halted in its own code, the stand-ins right.
  void stand(ScenarioId scenario) {
    halt_in_java(scenario);
    if (!HasFatalFailure()) stand_by(scenario);
  }
  void expect_frames_of_c_below(ScenarioId scenario, std::string_view entry);
  // The victim is halted.
  void stand_by(ScenarioId scenario) {
    *control_ = {};
    control_->stack = &stack_of_victim;
    control_->env = victim(scenario).jni_env;
    walked_thread.target = {};
    walked_thread.target.java_thread = victim(scenario).java_thread;
    walked_thread.target.jni_env = victim(scenario).jni_env;
    copy_context(victim(scenario).context_copy, &walked_thread.context);
    const auto of_c = unwinder_.unwind(
        walked_thread.context,
        [](const void*, uintptr_t pc) { return Jvm::get().code_map().in_code_cache(pc); }, nullptr);
    c_frames.assign(of_c.begin(), of_c.end());
    const CodeRef entry = {.kind = CodeKind::codelet,
                           .name = "method entry point (kind = zerolocals)"};
    native_pc = session().jvm().code_map().resolve(entry).value_or(0);
    ASSERT_NE(native_pc, 0U);
  }

  static Input input(WalkerId walker, Mode mode = Mode::separate_thread) {
    Input input;
    input.scenario = ScenarioId::c1;
    input.walker = walker;
    input.mode = mode;
    return input;
  }

  Control* control_ = nullptr;
  NativeUnwinder unwinder_;
};

TEST_F(WalkerOracleTest, RightWalkersAreNotReported) {
  start({ScenarioId::c1, ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : {ScenarioId::c1, ScenarioId::interpreted_recursion}) {
    stand(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const bool inlined : {false, true}) {
      top_is_inlined = inlined;
      for (const WalkerId walker : kAddedWalkers) {
        for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
          if (!traits_of(walker).walks_in(mode)) continue;
          for (const DepthKind depth : {DepthKind::normal, DepthKind::one, DepthKind::exact}) {
            for (const uint32_t options : {0U, 1U, 7U, 0xffffff00U}) {
              Input plain = input(walker, mode);
              plain.scenario = scenario;
              plain.call.depth = depth;
              plain.call.options = options;
              plain.iterator_calls = {{IteratorCallKind::drain},
                                      {IteratorCallKind::open},
                                      {IteratorCallKind::next, 2},
                                      {IteratorCallKind::open_frame},
                                      {IteratorCallKind::drain}};
              const Walked walked = walk(plain);
              EXPECT_TRUE(walked.findings.empty())
                  << name_of(walker) << " " << name_of(depth) << ": " << explain(walked);
              EXPECT_TRUE(walked.outcome.succeeded()) << name_of(walker);
            }
          }
        }
      }
    }
    session().release_world();
  }
}

TEST_F(WalkerOracleTest, OnlyAMethodBeingEnteredHasNothingOnTheStack) {
  start({ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  Input plain = input(WalkerId::asgst_iterator);
  plain.scenario = ScenarioId::interpreted_recursion;
  const auto clauses_in = [&](const char* codelet) {
    const auto place =
        session().jvm().code_map().resolve({.kind = CodeKind::codelet, .name = codelet});
    EXPECT_TRUE(place) << codelet;
    top_without_stack = place.value_or(0);
    return clauses_of(walk(plain).findings);
  };
  EXPECT_EQ(clauses_in("method entry point (kind = zerolocals)"), std::vector<std::string>());
  EXPECT_EQ(clauses_in("return entry points"),
            std::vector<std::string>{"contract:sp-not-advancing"});
}

// Below what it has called.
TEST_F(WalkerOracleTest, OnlyTheStubThatThawsHasNothingOnTheStackWhenItCalls) {
  start({ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  if (session().jvm().feature() < 25)
    GTEST_SKIP() << "its stub that thaws has another name, or none";
  stand(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  Input plain = input(WalkerId::asgst_iterator);
  plain.scenario = ScenarioId::interpreted_recursion;
  plain.call.options = kIncludeCFrames;
  // The frame of C above Java code is another oracle's.
  const std::string of_c = "contract:wrong-c-frames";
  const auto clauses_in = [&](const char* stub) {
    const auto place = session().jvm().code_map().resolve({.kind = CodeKind::stub, .name = stub});
    EXPECT_TRUE(place) << stub;
    stub_without_stack = place.value_or(0);
    return clauses_of(walk(plain).findings);
  };
  EXPECT_EQ(clauses_in("cont_thaw"), std::vector<std::string>{of_c});
  EXPECT_EQ(clauses_in("call_stub"), (std::vector<std::string>{"contract:sp-not-advancing", of_c}));
}

TEST_F(WalkerOracleTest, MasksOfARightWalkerAreNotReported) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  for (const int kinds : {0, 1, 2, 0xff}) {
    for (const uint32_t states : {0U, 4U, 0x400U, 0xffffffffU}) {
      Input masked = input(WalkerId::asgst);
      masked.call.accepted_kinds = static_cast<uint8_t>(kinds);
      masked.call.accepted_states = states;
      const Walked walked = walk(masked);
      EXPECT_TRUE(walked.findings.empty()) << explain(walked);
      EXPECT_EQ(walked.outcome.succeeded(), kinds != 2 && states != 0x400);
    }
  }
}

TEST_F(WalkerOracleTest, AWalkerIsOnlyWalkedInItsModes) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(input(WalkerId::asgst_env, Mode::same_thread)).outcome.status,
            Outcome::Status::no_walker);
}

// Whether the harness lends the victim's identity is seen by who the calling thread is.
void* seen_thread = nullptr;

TEST_F(WalkerOracleTest, TheIdentityIsLentToThoseThatBorrowIt) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  for (const WalkerId walker : kAddedWalkers) {
    stand(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    control_->stack = [](void*, stand_in::Frame*, size_t) {
      if (seen_thread == nullptr) seen_thread = Jvm::get().identity().current();
      return size_t{0};
    };
    seen_thread = nullptr;
    walk(input(walker));
    const bool lent = seen_thread == victim(ScenarioId::c1).java_thread;
    EXPECT_EQ(lent, walker == WalkerId::asgct2 || walker == WalkerId::asgct2_packed ||
                        walker == WalkerId::asgst_iterator || walker == WalkerId::jfr_request ||
                        walker == WalkerId::jfr_trace || walker == WalkerId::asgst_queue ||
                        walker == WalkerId::asgst_mark)
        << name_of(walker);
    session().release_world();
  }
}

struct WrongWalker {
  const char* name;
  Defect defect;
  WalkerId walker;
  std::string clause;
  CallArgs call = {};
};

class EachWrongWalker : public WalkerOracleTest, public testing::WithParamInterface<WrongWalker> {};

constexpr auto kAsgst = WalkerId::asgst;

INSTANTIATE_TEST_SUITE_P(
    Defects, EachWrongWalker,
    testing::Values(
        WrongWalker{"CollectsWithoutCause", Defect::says_collecting, kAsgst,
                    "collection-without-cause"},
        WrongWalker{"RequestOfNoFrame", Defect::request_of_no_frame, WalkerId::jfr_request,
                    "request-of-no-frame"},
        WrongWalker{"BiasedInAMethod", Defect::request_is_biased, WalkerId::jfr_request,
                    "biased-in-a-method"},
        WrongWalker{"UnknownType", Defect::unknown_type, kAsgst, "frame-type-out-of-range"},
        WrongWalker{"TierOutOfRange", Defect::tier_out_of_range, kAsgst, "tier-out-of-range"},
        WrongWalker{"InlinedIntoNative", Defect::inlined_into_native, kAsgst,
                    "tier-disagrees-with-type"},
        WrongWalker{"EndsWithInlined", Defect::ends_with_inlined, kAsgst, "inlined-without-caller"},
        WrongWalker{"TwoKinds", Defect::two_kinds, kAsgst, "kind-out-of-range"},
        WrongWalker{"KindNotAccepted",
                    Defect::kind_not_accepted,
                    kAsgst,
                    "kind-not-accepted",
                    {.accepted_kinds = 2}},
        WrongWalker{"WrongKindWithoutCause", Defect::wrong_kind_without_cause, kAsgst,
                    "wrong-kind-without-cause"},
        WrongWalker{"StateNotAccepted",
                    Defect::state_not_accepted,
                    kAsgst,
                    "state-not-accepted",
                    {.accepted_states = 0x400}},
        WrongWalker{"WrongStateWithoutCause", Defect::wrong_state_without_cause, kAsgst,
                    "wrong-state-without-cause"},
        WrongWalker{"StateWithAnUntoldBit", Defect::state_with_parked, kAsgst,
                    "state-out-of-range"},
        WrongWalker{"StateNotAlive", Defect::state_not_alive, kAsgst,
                    "state-disagrees-with-victim"},
        WrongWalker{"EnvOfNobody", Defect::env_of_nobody, kAsgst, "env-of-another-thread"},
        WrongWalker{"LosesTheThread", Defect::loses_the_thread, kAsgst, "thread-not-found"},
        WrongWalker{"UnknownBitMatters", Defect::unknown_bit_matters, kAsgst,
                    "unknown-option-matters"},
        WrongWalker{"CFramesCostAJavaFrame", Defect::c_frames_cost_a_java_frame, kAsgst,
                    "c-frames-change-java-frames"},
        WrongWalker{"CFramesUnasked", Defect::c_frames_unasked, kAsgst, "cpp-frame-unasked"},
        WrongWalker{"ContainsAndDoesNotTell", Defect::contains_and_does_not_tell, kAsgst,
                    "contained-fault-untold"},
        WrongWalker{"LeavesOutAFrame", Defect::leaves_out_a_frame, kAsgst, "disagrees-with-asgct"},
        WrongWalker{"RefusesAStandingFrame", Defect::refuses, kAsgst, "refuses-a-standing-frame"},
        WrongWalker{"Refuses", Defect::refuses, kAsgst, "refuses-what-asgct-walks"},
        WrongWalker{"NotWalkableWithoutReason", Defect::not_walkable_without_reason, kAsgst,
                    "not-walkable-without-reason"},
        WrongWalker{"NoFrameAndStopped", Defect::no_frame_and_stopped, kAsgst,
                    "no-frame-and-stopped"},
        WrongWalker{"EnvLeavesOutAFrame", Defect::leaves_out_a_frame, WalkerId::asgst_env,
                    "disagrees-with-asgct"},
        WrongWalker{"Asgct2LeavesOutAFrame", Defect::leaves_out_a_frame, WalkerId::asgct2,
                    "disagrees-with-asgct"},
        WrongWalker{"Asgct2Refuses", Defect::refuses, WalkerId::asgct2, "refuses-what-asgct-walks"},
        WrongWalker{"IteratorDisagreesWithAsgct2", Defect::gives_another_bci,
                    WalkerId::asgst_iterator, "disagrees-with-asgct2"},
        WrongWalker{"CppFrameWithMethod", Defect::cpp_frame_with_method, WalkerId::asgct2,
                    "cpp-frame-of-a-method"},
        WrongWalker{"InterpretedWithTier", Defect::interpreted_with_tier, WalkerId::asgct2,
                    "tier-disagrees-with-type"},
        WrongWalker{"InlinedAsCompiled", Defect::inlined_as_compiled, WalkerId::asgct2,
                    "disagrees-with-asgst"},
        WrongWalker{"PackedLeavesOutAFrame", Defect::leaves_out_a_frame, WalkerId::asgct2_packed,
                    "disagrees-with-asgct"},
        WrongWalker{"PackedGivesAnotherBci", Defect::gives_another_bci, WalkerId::asgct2_packed,
                    "disagrees-with-asgct"},
        WrongWalker{"PackedRefuses", Defect::refuses, WalkerId::asgct2_packed,
                    "refuses-what-asgct-walks"},
        WrongWalker{"NativeFrameOfAJavaMethod", Defect::java_as_native, WalkerId::asgct2_packed,
                    "disagrees-with-asgct"},
        WrongWalker{"StubOutsideTheCodeCache", Defect::cpp_as_stub, WalkerId::asgct2_packed,
                    "made-frame-outside-code-cache"},
        WrongWalker{"SaysCut", Defect::says_cut, kAsgst, "says-cut-where-whole"},
        WrongWalker{"SaysFrozen", Defect::says_frozen, kAsgst, "says-cut-where-whole"},
        WrongWalker{"SpOfInlinedDiffers", Defect::sp_of_inlined_differs, WalkerId::asgst_iterator,
                    "sp-of-inlined-frame"},
        WrongWalker{"HandlerCalledTwice", Defect::calls_handlers_twice, WalkerId::asgst_iterator,
                    "iterator-handler-calls"},
        WrongWalker{"FramesChange", Defect::frames_change, WalkerId::asgst_frame,
                    "not-deterministic"}),
    [](const auto& wrong) { return wrong.param.name; });

TEST_P(EachWrongWalker, IsReported) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  top_is_inlined = GetParam().defect == Defect::sp_of_inlined_differs ||
                   GetParam().defect == Defect::inlined_as_compiled;
  Input wrong = input(GetParam().walker);
  wrong.call = GetParam().call;
  ASSERT_EQ(clauses_of(walk(wrong).findings), std::vector<std::string>{})
      << "right without the defect";
  control_->defect = GetParam().defect;
  const Walked walked = walk(wrong);
  const auto clauses = clauses_of(walked.findings);
  EXPECT_EQ(std::ranges::count(clauses, "contract:" + GetParam().clause), 1) << explain(walked);
}

// AsyncGetCallTrace has those on the stack, and then the carrier's.
TEST_F(WalkerOracleTest, ATraceWithoutTheFramesInTheHeapSaysSo) {
  constexpr ScenarioId kScenario = ScenarioId::virtual_remounted;
  start_if_had(kScenario);
  if (HasFatalFailure() || IsSkipped()) return;
  stand(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  for (const WalkerId walker : {kAsgst, WalkerId::asgct2}) {
    Input plain = input(walker);
    plain.scenario = kScenario;
    const auto says_nothing = [&] {
      return std::ranges::count(clauses_of(walk(plain).findings),
                                "contract:leaves-out-and-does-not-say");
    };
    control_->defect = Defect::none;
    EXPECT_EQ(says_nothing(), walker == kAsgst ? 1 : 0) << "AsyncGetCallTrace2 cannot say it";
    control_->defect = Defect::says_frozen;
    EXPECT_EQ(says_nothing(), 0);
  }
}

// JFR's trace has those in the heap, too: one that has no more than the first frame is short.
TEST_F(WalkerOracleTest, ATraceThatSeesTheHeapHasAllOfIt) {
  constexpr ScenarioId kScenario = ScenarioId::virtual_cycling;
  start_if_had(kScenario);
  if (HasFatalFailure() || IsSkipped()) return;
  // Of those of AsyncGetCallTrace.
  class OneFrame final : public Walker {
   public:
    explicit OneFrame(Walker* asgct) : Walker(traits_of(WalkerId::jfr_trace)), asgct_(asgct) {}
    int32_t walk(const WalkTarget& target, std::byte* frames, int32_t,
                 void* context) noexcept override {
      struct RealFrame {
        jint bci;
        jmethodID method;
      } real;
      const ThreadIdentity::Scoped as_victim(Jvm::get().identity(), target.java_thread);
      if (asgct_->walk(target, reinterpret_cast<std::byte*>(&real), 1, context) != 1) return 0;
      std::memset(frames, 0, layout().stride);
      std::memcpy(frames + layout().method, &real.method, sizeof real.method);
      std::memcpy(frames + layout().bci, &real.bci, sizeof real.bci);
      return 1;
    }

   private:
    Walker* asgct_;
  };
  executor().replace_walker(std::make_unique<OneFrame>(walked_thread.asgct));
  Input plain = input(WalkerId::jfr_trace);
  plain.scenario = kScenario;
  std::set<bool> of_victim;
  for (int i = 0; i < 200 && of_victim.size() < 2; ++i) {
    halt(kScenario);
    ASSERT_FALSE(HasFatalFailure());
    const Walked walked = walk(plain);
    const auto trace = executor().last_trace();
    if (trace.empty()) continue;
    // Else the carrier's alone.
    const bool own = trace.front().method.starts_with("framestorm/");
    of_victim.insert(own);
    EXPECT_EQ(
        std::ranges::count(clauses_of(walked.findings), "contract:leaves-out-and-does-not-say"),
        own ? 1 : 0)
        << trace.front().method << ": " << explain(walked);
  }
  EXPECT_TRUE(of_victim.contains(true));
}

// The VM does not know it, and by other ways it is not there.
TEST_F(WalkerOracleTest, AThreadThatWalksItselfIsThere) {
  constexpr ScenarioId kScenario = ScenarioId::native_unattached;
  start({kScenario});
  ASSERT_FALSE(HasFatalFailure());
  halt(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  *control_ = {};
  control_->defect = Defect::loses_the_thread;
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    Input plain = input(kAsgst, mode);
    plain.scenario = kScenario;
    EXPECT_EQ(std::ranges::count(clauses_of(walk(plain).findings), "contract:thread-not-found"),
              mode == Mode::same_thread ? 1 : 0);
  }
}

TEST_F(WalkerOracleTest, ARequestOfBytecodesDoesNotSayThatTheyAreNative) {
  start({ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  control_->stack = [](void* context, stand_in::Frame* out, size_t room) {
    const size_t size = stack_of_victim(context, out, room);
    for (size_t i = 0; i < size; ++i) out[i].fp = out[i].sp + 2 * sizeof(uintptr_t);
    return size;
  };
  Input plain = input(WalkerId::jfr_request);
  plain.scenario = ScenarioId::interpreted_recursion;
  EXPECT_EQ(clauses_of(walk(plain).findings), std::vector<std::string>{});
  control_->defect = Defect::request_says_native;
  EXPECT_EQ(clauses_of(walk(plain).findings),
            std::vector<std::string>{"contract:request-of-no-frame"});
}

TEST_F(WalkerOracleTest, ARequestStartsFromTheAnchor) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  control_->defect = Defect::request_is_biased;
  const Victim& spinning = victim(ScenarioId::c1);
  const auto& layout = session().jvm().layout();
  const auto at = [&](size_t offset) -> uintptr_t& {
    return *reinterpret_cast<uintptr_t*>(static_cast<std::byte*>(spinning.java_thread) + offset);
  };
  const auto stub =
      session().jvm().code_map().resolve({.kind = CodeKind::stub, .name = "call_stub"});
  const auto codelet =
      session().jvm().code_map().resolve({.kind = CodeKind::codelet, .name = "iadd"});
  ASSERT_TRUE(stub && codelet);
  const auto reported = [&](uintptr_t sp, uintptr_t pc) {
    at(layout.last_java_sp) = sp;
    at(layout.last_java_pc) = pc;
    const auto clauses = clauses_of(walk(input(WalkerId::jfr_request)).findings);
    return std::ranges::count(clauses, "contract:biased-in-a-method");
  };
  EXPECT_EQ(reported(spinning.sp, spinning.pc), 1);
  EXPECT_EQ(reported(spinning.sp, *stub), 0);
  EXPECT_EQ(reported(spinning.sp, *codelet), 0) << "its call may be still to come";
  EXPECT_EQ(reported(spinning.sp + 8, *codelet), 1);
  const auto native = session().jvm().feature() < 21 ? "method entry point (kind = native)"
                                                     : "native method entry point (kind = native)";
  for (const char* const returns : {"return_register_finalizer", "goto", native}) {
    const auto place =
        session().jvm().code_map().resolve({.kind = CodeKind::codelet, .name = returns});
    ASSERT_TRUE(place) << returns;
    EXPECT_EQ(reported(spinning.sp + 8, *place), 0) << returns;
  }
  at(layout.last_java_sp) = at(layout.last_java_pc) = 0;
}

TEST_F(WalkerOracleTest, AFrameOfANativeMethodHasItsPc) {
  start({ScenarioId::parked});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  stand_by(ScenarioId::parked);
  Input plain = input(WalkerId::asgct2);
  plain.scenario = ScenarioId::parked;
  const auto reported = [&] {
    return std::ranges::count(clauses_of(walk(plain).findings),
                              "contract:made-frame-outside-code-cache");
  };
  EXPECT_EQ(reported(), 0);
  control_->defect = Defect::native_without_pc;
  EXPECT_EQ(reported(), 1);
}

TEST_F(WalkerOracleTest, AJavaFrameOfAMutatedContextIsInCode) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const CodeMap& code = session().jvm().code_map();
  const CodeEntry* const compiled = code.find(victim(ScenarioId::c1).pc);
  ASSERT_NE(compiled, nullptr);
  const uintptr_t header = compiled->begin - sizeof(uintptr_t);
  if (!code.is_beside_code(header)) GTEST_SKIP() << "this HotSpot does not say where code begins";
  EXPECT_FALSE(code.is_beside_code(compiled->begin));
  EXPECT_FALSE(code.is_beside_code(compiled->end - 1));
  EXPECT_TRUE(code.is_beside_code(compiled->end));
  Input mutated = input(WalkerId::asgst_iterator);
  mutated.iterator_calls = {{IteratorCallKind::drain}};
  mutated.mutations.resize(1);
  mutated.mutations[0].kind = MutationKind::set_register;
  mutated.mutations[0].reg = Register::r3;
  mutated.mutations[0].value.delta = 8;
  const auto reported = [&](uintptr_t pc) {
    top_pc = pc;
    return std::ranges::count(clauses_of(walk(mutated).findings), "contract:pc-beside-code");
  };
  EXPECT_EQ(reported(compiled->begin), 0);
  EXPECT_EQ(reported(header), 1);
}

TEST_F(WalkerOracleTest, OutsideJavaAThreadIsNotRefusedWhoseAnchorStands) {
  start({ScenarioId::parked});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  stand_by(ScenarioId::parked);
  control_->defect = Defect::refuses;
  Input plain = input(kAsgst);
  plain.scenario = ScenarioId::parked;
  const auto reported = [&] {
    return std::ranges::count(clauses_of(walk(plain).findings),
                              "contract:refuses-a-standing-frame");
  };
  EXPECT_EQ(reported(), 1);
  const auto at = [&](size_t offset) -> uintptr_t& {
    auto* const thread = static_cast<std::byte*>(victim(ScenarioId::parked).java_thread);
    return *reinterpret_cast<uintptr_t*>(thread + offset);
  };
  const ThreadLayout& layout = session().jvm().layout();
  // After each walk the thread is put right.
  at(layout.last_java_pc) = 0;
  EXPECT_EQ(reported(), 1) << "an anchor without its pc says where, too";
  plain.walker = WalkerId::asgct;
  at(layout.last_java_pc) = 0;
  const Walked refused = walk(plain);
  EXPECT_FALSE(refused.outcome.succeeded());
  EXPECT_EQ(std::ranges::count(clauses_of(refused.findings), "contract:refuses-a-standing-frame"),
            0)
      << "not to AsyncGetCallTrace";
  plain.walker = kAsgst;
  const uintptr_t real = std::exchange(at(layout.last_java_sp), 0);
  EXPECT_EQ(reported(), 0) << "nothing says where its Java frames are";
  at(layout.last_java_sp) = 0;
  EXPECT_EQ(
      std::ranges::count(clauses_of(walk(plain).findings), "contract:refuses-what-asgct2-walks"), 0)
      << "asgct2 goes by the frames of C";
  at(layout.last_java_sp) = real;
}

TEST_F(WalkerOracleTest, BelowAStubAsgctMayGiveOtherInlinedFrames) {
  start({ScenarioId::c1, ScenarioId::exception_unwind});
  ASSERT_FALSE(HasFatalFailure());
  const auto disagreements = [this](ScenarioId scenario) {
    Input plain = input(kAsgst);
    plain.scenario = scenario;
    return std::ranges::count(clauses_of(walk(plain).findings), "contract:disagrees-with-asgct");
  };
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(disagreements(ScenarioId::c1), 0);
  one_more_inlined = true;
  EXPECT_EQ(disagreements(ScenarioId::c1), 1);
  session().release_world();

  // In the VM, which looks for the handler of an exception in compiled code.
  one_more_inlined = false;
  const auto& layout = session().jvm().layout();
  const Victim& thrower = victim(ScenarioId::exception_unwind);
  bool there = false;
  for (int i = 0; i < 200 && !there; ++i) {
    halt(ScenarioId::exception_unwind);
    ASSERT_FALSE(HasFatalFailure());
    stand_by(ScenarioId::exception_unwind);
    const auto last_pc = read_at<uintptr_t>(thrower.java_thread, layout.last_java_pc);
    const CodeEntry* const code = session().jvm().code_map().find(last_pc);
    Input plain = input(WalkerId::asgct);
    plain.scenario = ScenarioId::exception_unwind;
    // Of what a thread in Java has called AsyncGetCallTrace loses the compiled frames.
    there = code != nullptr && code->kind == CodeKind::stub &&
            thrower.thread_state(layout) != kThreadInJava && walk(plain).outcome.result > 2;
  }
  ASSERT_TRUE(there) << "no halt below a stub that AsyncGetCallTrace walks";
  EXPECT_EQ(disagreements(ScenarioId::exception_unwind), 0);
  one_more_inlined = true;
  EXPECT_EQ(disagreements(ScenarioId::exception_unwind), 0);
  caller_missing = true;
  EXPECT_EQ(disagreements(ScenarioId::exception_unwind), 1);
}

// AsyncGetCallTrace does not give it, so that a trace of one frame has none of AsyncGetCallTrace's.
TEST_F(WalkerOracleTest, AMethodBeingEnteredMayBeAllThatATraceHasRoomFor) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  one_more_entered = true;
  Input plain = input(kAsgst);
  plain.call.options = 0;
  for (const DepthKind depth : {DepthKind::normal, DepthKind::one}) {
    plain.call.depth = depth;
    const auto clauses = clauses_of(walk(plain).findings);
    EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgct"), 0) << name_of(depth);
  }
  // Of three registers the bci is a guess, too.
  const auto entered_with = [this](int32_t bci, WalkerId walker) {
    bci_of_entered = bci;
    const auto clauses = clauses_of(walk(input(walker)).findings);
    return std::ranges::count(clauses, "contract:disagrees-with-asgct");
  };
  EXPECT_EQ(entered_with(1, WalkerId::asgst_frame), 0);
  EXPECT_EQ(entered_with(1, kAsgst), 1);
  bci_of_entered = 0;
  one_more_entered = false;
  caller_missing = true;
  plain.call.depth = DepthKind::normal;
  const auto clauses = clauses_of(walk(plain).findings);
  EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgct"), 1);
}

// Which has no frame, and jumps on.
TEST_F(WalkerOracleTest, QueuesBeginBelowAMethodHandlesIntrinsicAndNoOtherMethod) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  JNIEnv* const env = Jvm::get().env();
  const auto native = [&](const char* type, const char* name, const char* descriptor) {
    return env->GetMethodID(env->FindClass(type), name, descriptor);
  };
  const jmethodID intrinsic = native("java/lang/invoke/MethodHandle", "invokeBasic",
                                     "([Ljava/lang/Object;)Ljava/lang/Object;");
  const jmethodID another = native("java/lang/Object", "hashCode", "()I");
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto disagreements = [&](jmethodID on_top, const char* with) {
    one_more_native = on_top;
    return std::ranges::count(clauses_of(walk(input(kAsgst)).findings),
                              std::string("contract:disagrees-with-") + with);
  };
  EXPECT_EQ(disagreements(intrinsic, "asgst-queue"), 0);
  EXPECT_EQ(disagreements(intrinsic, "asgct"), 1);
  EXPECT_EQ(disagreements(another, "asgst-queue"), 1);
}

TEST_F(WalkerOracleTest, NativeFramesHaveTheBciTheirApiSays) {
  start({ScenarioId::native_method});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  stand_by(ScenarioId::native_method);
  Input plain = input(kAsgst);
  plain.scenario = ScenarioId::native_method;
  const Walked right = walk(plain);
  EXPECT_TRUE(right.findings.empty()) << explain(right);
  control_->defect = Defect::native_bci_zero;
  const Walked wrong = walk(plain);
  EXPECT_EQ(std::ranges::count(clauses_of(wrong.findings), "contract:native-bci"), 1)
      << explain(wrong);
}

// The packed layout has their pc only.
TEST_F(WalkerOracleTest, NativeFramesWithoutAMethodAreHeldToTheirPlace) {
  start({ScenarioId::native_method});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  stand_by(ScenarioId::native_method);
  Input plain = input(WalkerId::asgct2_packed);
  plain.scenario = ScenarioId::native_method;
  const auto clauses = [&] { return clauses_of(walk(plain).findings); };

  const Walked right = walk(plain);
  EXPECT_TRUE(right.findings.empty()) << explain(right);
  ASSERT_GT(right.methods.size(), c_frames.size() + 1);
  EXPECT_EQ(right.methods[c_frames.size()], kUnnamedNative);
  control_->defect = Defect::native_elsewhere;
  EXPECT_EQ(std::ranges::count(clauses(), "contract:disagrees-with-asgct2"), 1);
  control_->defect = Defect::leaves_out_a_frame;
  EXPECT_EQ(std::ranges::count(clauses(), "contract:wrong-frames"), 1);
  EXPECT_EQ(std::ranges::count(clauses(), "contract:disagrees-with-asgct"), 1);
  control_->defect = Defect::none;
  native_pc = 0x100;
  EXPECT_EQ(std::ranges::count(clauses(), "contract:made-frame-outside-code-cache"), 1);

  // In code that was compiled for it, it has a name, which then has to be right.
  constexpr std::string_view kSpin = "framestorm/Harness.spinInNative";
  const auto compiled = [&](bool spin) {
    for (const CodeEntry& code : session().jvm().code_map().entries()) {
      const bool native = code.kind == CodeKind::nmethod && code.tier == 0;
      if (native && (code.name == kSpin) == spin) return code.begin;
    }
    return uintptr_t{0};
  };
  native_pc = compiled(/*spin=*/true);
  ASSERT_NE(native_pc, 0U);
  const Walked named = walk(plain);
  EXPECT_TRUE(named.findings.empty()) << explain(named);
  EXPECT_EQ(named.methods[c_frames.size()], kSpin);
  native_pc = compiled(/*spin=*/false);  // each JVM has some at its start
  ASSERT_NE(native_pc, 0U);
  EXPECT_EQ(std::ranges::count(clauses(), "contract:disagrees-with-asgct"), 1);
}

TEST_F(WalkerOracleTest, AnUnnamedNativeMethodOnTopMayHaveAnotherPcThanTheRegister) {
  start({ScenarioId::math_stubs});  // whose top frames may be any of the JDK's
  ASSERT_FALSE(HasFatalFailure());
  JNIEnv* const env = Jvm::get().env();
  const jmethodID native = env->GetMethodID(env->FindClass("java/lang/Object"), "hashCode", "()I");
  Input plain = input(WalkerId::asgct);
  plain.scenario = ScenarioId::math_stubs;
  bool walked = false;
  for (int i = 0; i < 200 && !walked; ++i) {
    halt(ScenarioId::math_stubs);
    ASSERT_FALSE(HasFatalFailure());
    stand_by(ScenarioId::math_stubs);
    // No native method is on top yet: the stand-in moves each.
    const Walked as_it_is = walk(plain);
    walked = as_it_is.outcome.result > 2 && as_it_is.frames.front().bci >= 0;
  }
  ASSERT_TRUE(walked) << "no halt in a Java method that AsyncGetCallTrace walks";
  one_more_native = native;
  control_->defect = Defect::native_elsewhere;
  plain.walker = WalkerId::asgct2_packed;
  const Walked elsewhere = walk(plain);
  const auto clauses = clauses_of(elsewhere.findings);
  EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgct2"), 1) << explain(elsewhere);
  EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgst-frame"), 0)
      << explain(elsewhere);
}

TEST_F(WalkerOracleTest, FramesOfCHaveNoPcInCodeTheVmMade) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input with_c_frames = input(WalkerId::asgst);
  with_c_frames.call.options = kIncludeCFrames;
  const Walked right = walk(with_c_frames);
  EXPECT_TRUE(right.findings.empty()) << explain(right);
  c_frame_pc = victim(ScenarioId::c1).pc;
  const Walked wrong = walk(with_c_frames);
  EXPECT_EQ(std::ranges::count(clauses_of(wrong.findings), "contract:cpp-frame-in-made-code"), 1)
      << explain(wrong);
}

TEST_F(WalkerOracleTest, FramesOfCHaveTheirPcInCodeWhateverIsMutated) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input mutated = input(WalkerId::asgst_iterator);
  mutated.call.options = kIncludeCFrames;
  mutated.mutations.resize(1);
  mutated.mutations[0].kind = MutationKind::set_register;
  mutated.mutations[0].reg = Register::r3;
  mutated.mutations[0].value.delta = 8;
  const auto in_no_code = [&] {
    return std::ranges::count(clauses_of(walk(mutated).findings), "contract:cpp-frame-in-no-code");
  };
  c_frame_pc = c_code;
  EXPECT_EQ(in_no_code(), 0);
  static const int data = 0;
  c_frame_pc = reinterpret_cast<uintptr_t>(&data);
  EXPECT_EQ(in_no_code(), 1);
}

// The scenario's are two functions of the harness, the inner one called by the outer one.
TEST_F(WalkerOracleTest, FramesOfCAreThoseOfTheUnwinder) {
  start({ScenarioId::native_method, ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  stand_by(ScenarioId::native_method);
  ASSERT_FALSE(c_frames.empty());
  const std::vector<NativeFrame> right = c_frames;
  const auto wrong = [this](WalkerId walker, Mode mode) {
    Input plain = input(walker, mode);
    plain.scenario = ScenarioId::native_method;
    plain.call.options = kIncludeCFrames;
    return std::ranges::count(clauses_of(walk(plain).findings), "contract:wrong-c-frames");
  };
  for (const WalkerId walker : {WalkerId::asgst, WalkerId::asgct2, WalkerId::asgst_iterator}) {
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      EXPECT_EQ(wrong(walker, mode), 0);
      c_frames.back().pc += 1;
      EXPECT_EQ(wrong(walker, mode), 1) << "another place";
      c_frames = right;
      c_frames.pop_back();
      EXPECT_EQ(wrong(walker, mode), 1) << "one missing";
      c_frames = right;
      c_frames.push_back({.pc = right.back().pc, .sp = right.back().sp + 8});
      EXPECT_EQ(wrong(walker, mode), 1) << "one too many";
      c_frames = right;
    }
  }
  Input plain = input(WalkerId::asgst);
  plain.scenario = ScenarioId::native_method;
  plain.call.options = kIncludeCFrames;
  const auto refused = [&] {
    return std::ranges::count(clauses_of(walk(plain).findings), "contract:refuses-c-frames");
  };
  EXPECT_EQ(refused(), 0);
  control_->defect = Defect::refuses;
  EXPECT_EQ(refused(), 1);
  control_->defect = Defect::none;
  c_frames.front().sp -= 8;
  EXPECT_EQ(wrong(WalkerId::asgst_iterator, Mode::separate_thread), 1) << "another sp";
  session().release_world();

  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(c_frames.empty());
  plain.scenario = ScenarioId::c1;
  EXPECT_EQ(clauses_of(walk(plain).findings), std::vector<std::string>());
  c_frames = right;
  EXPECT_EQ(clauses_of(walk(plain).findings), std::vector<std::string>{"contract:wrong-c-frames"});
}

// call_stub's return address is found on the stack, and what has called it from there.
void WalkerOracleTest::expect_frames_of_c_below(ScenarioId scenario, std::string_view entry) {
  start_if_had(scenario);
  if (HasFatalFailure() || IsSkipped()) return;
  stand(scenario);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(scenario);
  const CodeMap& code = session().jvm().code_map();
  const uintptr_t stub =
      code.resolve({.kind = CodeKind::stub, .name = std::string(entry)}).value_or(0);
  ASSERT_NE(stub, 0U);
  const auto word_at = [](uintptr_t place) { return *reinterpret_cast<const uintptr_t*>(place); };
  uintptr_t place = walked.sp;
  while (place < walked.stack_base && code.find(word_at(place)) != code.find(stub)) {
    place += sizeof(uintptr_t);
  }
  ASSERT_LT(place, walked.stack_base);
  const uintptr_t fp = word_at(place - sizeof(uintptr_t));
  ucontext_t caller;
  copy_context(walked.context_copy, &caller);
  set_register(&caller, Register::pc, word_at(fp + sizeof(uintptr_t)));
  set_register(&caller, Register::sp, fp + 2 * sizeof(uintptr_t));
  set_register(&caller, Register::fp, word_at(fp));
  const auto callers = unwinder_.unwind(
      caller, [](const void*, uintptr_t pc) { return Jvm::get().code_map().in_code_cache(pc); },
      nullptr);
  ASSERT_GT(callers.size(), 1U);
  below_java = {{.pc = word_at(place), .sp = place + sizeof(uintptr_t)}};
  below_java.insert(below_java.end(), callers.begin(), callers.end());
  const std::vector<NativeFrame> right = below_java;
  // AsyncGetCallTrace's Java frames, which end at an upcall, are not what is asked here.
  const auto wrong = [&] {
    Input plain = input(WalkerId::asgst_iterator);
    plain.scenario = scenario;
    plain.call.options = kIncludeCFrames;
    return std::ranges::count(clauses_of(walk(plain).findings), "contract:wrong-c-frames");
  };
  EXPECT_EQ(wrong(), 0);
  below_java[2].pc += 1;
  EXPECT_EQ(wrong(), 1) << "another place";
  below_java = right;
  below_java[1].sp -= 8;
  EXPECT_EQ(wrong(), 1) << "another sp";
  below_java = right;
  below_java.erase(below_java.begin() + 1);
  EXPECT_EQ(wrong(), 1) << "one missing";
  below_java = {right.front()};
  EXPECT_EQ(wrong(), 1) << "all missing";
  below_java.front().sp += sizeof(uintptr_t);
  EXPECT_EQ(wrong(), 1) << "all missing, and what it has called is interpreted and has a parameter";
}

TEST_F(WalkerOracleTest, FramesOfCBelowJavaAreThoseOfTheUnwinder) {
  expect_frames_of_c_below(ScenarioId::c1, "call_stub");
}

TEST_F(WalkerOracleTest, FramesOfCBelowAnUpcallAreThoseOfTheUnwinder) {
  expect_frames_of_c_below(ScenarioId::ffi_upcall, "upcall_stub");
}

// Of a mutated context nothing else is known to be true.
TEST_F(WalkerOracleTest, AnInterpretedFrameIsOfSomething) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  for (const WalkerId id : {WalkerId::asgst, WalkerId::asgct2}) {
    top_is_nothing = false;
    const Walked right = walk(input(id));
    EXPECT_TRUE(right.findings.empty()) << explain(right);
    top_is_nothing = true;
    const Walked wrong = walk(input(id));
    EXPECT_EQ(
        std::ranges::count(clauses_of(wrong.findings), "contract:interpreted-frame-of-nothing"), 1)
        << explain(wrong);
  }
}

TEST_F(WalkerOracleTest, AFaultThatTheVmContainedIsAFault) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  control_->defect = Defect::contains_a_fault;
  const Walked walked = walk(input(kAsgst));
  EXPECT_EQ(walked.outcome.end, WalkEnd::returned);
  EXPECT_EQ(clauses_of(walked.findings), std::vector<std::string>{"fault:contained"})
      << explain(walked);
}

TEST_F(WalkerOracleTest, FindingsOfOracleWalksSayWhatWasWalked) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  control_->defect = Defect::contains_a_fault;
  const Walked walked = walk(input(WalkerId::asgct2));
  ASSERT_FALSE(walked.findings.empty()) << "the agreement oracle walks with asgst, too";
  for (const Finding& finding : walked.findings) {
    EXPECT_NE(finding.input.walker, WalkerId::asgct2) << finding.detail;
    EXPECT_EQ(finding.input.scenario, ScenarioId::c1);
  }
}

TEST_F(WalkerOracleTest, IteratorCallsAreMadeAndJudged) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  control_->defect = Defect::accepts_closed_iterators;
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    Input calls = input(WalkerId::asgst_iterator, mode);
    calls.iterator_calls = {{IteratorCallKind::open},
                            {IteratorCallKind::leave},
                            {IteratorCallKind::select, 1},
                            {IteratorCallKind::next}};
    const Walked walked = walk(calls);
    EXPECT_EQ(clauses_of(walked.findings),
              std::vector<std::string>{"contract:iterator-invalid-accepted"})
        << explain(walked);
    EXPECT_TRUE(walked.outcome.succeeded());
  }
}

TEST_F(WalkerOracleTest, OnlyAThreadThatIsExitingIsRefusedAsSuch) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const ThreadLayout& layout = session().jvm().layout();
  ASSERT_NE(layout.terminated, 0U);
  const auto clauses = [&](WalkerId walker) { return clauses_of(walk(input(walker)).findings); };
  auto* const terminated = reinterpret_cast<int32_t*>(
      static_cast<std::byte*>(victim(ScenarioId::c1).java_thread) + layout.terminated);
  *terminated = layout.not_terminated + 1;
  const auto wrong = clauses(WalkerId::asgst_iterator);
  const auto refused = clauses(WalkerId::asgct);
  *terminated = layout.not_terminated;
  EXPECT_EQ(std::ranges::count(wrong, "contract:walks-an-exiting-thread"), 1);
  EXPECT_EQ(refused, std::vector<std::string>{});
  control_->kind = -2;  // ASGST_THREAD_EXIT
  const auto without_cause = clauses(WalkerId::asgst_iterator);
  EXPECT_EQ(std::ranges::count(without_cause, "contract:exit-without-cause"), 1);
}

TEST_F(WalkerOracleTest, ATraceDuringACollectionIsReported) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(session().jvm().collections().are_known());
  const VmStructs& structs = session().jvm().structs();
  auto offset = structs.offset("CollectedHeap", "_is_stw_gc_active");
  if (!offset) offset = structs.required_offset("CollectedHeap", "_is_gc_active");
  auto* const heap =
      *static_cast<std::byte**>(structs.static_address("Universe", "_collectedHeap"));
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input plain = input(kAsgst);
  collecting = reinterpret_cast<bool*>(heap + *offset);
  *collecting = true;
  const Walked wrong = walk(plain);
  plain.walker = WalkerId::asgct;
  const Walked refused = walk(plain);
  plain.walker = kAsgst;
  plain.call.options = kWalkDuringUnsafeStates;
  const Walked asked_for = walk(plain);
  *collecting = false;
  collecting = nullptr;
  EXPECT_EQ(std::ranges::count(clauses_of(wrong.findings), "contract:trace-during-collection"), 1)
      << explain(wrong);
  EXPECT_TRUE(refused.findings.empty()) << explain(refused);
  EXPECT_EQ(refused.outcome.result, -2);
  EXPECT_TRUE(asked_for.findings.empty()) << explain(asked_for);
}

}  // namespace
}  // namespace framestorm
