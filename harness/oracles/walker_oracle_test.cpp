// The oracles of the walkers that are built into the instrumented JDK.
#include <algorithm>

#include "harness/base/poke.h"
#include "harness/oracles/walker_oracle_fixture.h"

namespace framestorm::walker_oracle_test {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::Walked;
using stand_in::Defect;

TEST_F(WalkerOracleTest, RightWalkersAreNotReported) {
  start({ScenarioId::c1, ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : {ScenarioId::c1, ScenarioId::interpreted_recursion}) {
    stand(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const bool inlined : {false, true}) {
      made.top_is_inlined = inlined;
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
  ASSERT_TRUE(start_and_stand(ScenarioId::interpreted_recursion));
  Input plain = input(WalkerId::asgst_iterator);
  plain.scenario = ScenarioId::interpreted_recursion;
  const auto clauses_in = [&](const char* codelet) {
    made.top_without_stack = entry_of(CodeKind::codelet, codelet);
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
    made.stub_without_stack = entry_of(CodeKind::stub, stub);
    return clauses_of(walk(plain).findings);
  };
  EXPECT_EQ(clauses_in("cont_thaw"), std::vector<std::string>{of_c});
  EXPECT_EQ(clauses_in("call_stub"), (std::vector<std::string>{"contract:sp-not-advancing", of_c}));
}

TEST_F(WalkerOracleTest, MasksOfARightWalkerAreNotReported) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
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

TEST_F(WalkerOracleTest, AThreadOfTheVmIsOfItsKind) {
  start({ScenarioId::gc_thread, ScenarioId::vm_thread});
  ASSERT_FALSE(HasFatalFailure());
  constexpr int32_t kCpp = 2, kGc = 4;
  for (const auto& [scenario, kind] :
       {std::pair(ScenarioId::gc_thread, kGc), {ScenarioId::vm_thread, kCpp}}) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    *control_ = {};
    control_->stack = [](void*, stand_in::Frame* out, size_t) -> size_t {
      *out = {.type = stand_in::Type::cpp, .pc = kPcOfC};
      return 1;
    };
    Input plain = input(WalkerId::asgst);
    plain.scenario = scenario;
    plain.call.options = kIncludeCFrames | kIncludeNonJavaThreads;
    control_->kind = kind;
    EXPECT_EQ(times_reported(plain, "kind-disagrees-with-victim"), 0) << name_of(scenario);
    control_->kind = kGc + kCpp - kind;
    EXPECT_EQ(times_reported(plain, "kind-disagrees-with-victim"), 1) << name_of(scenario);
  }
}

// Victims are, but for the halts that are for them.
TEST_F(WalkerOracleTest, AThreadIsSaidToBeSuspendedIfItIs) {
  constexpr int32_t kRunnable = 5, kSuspended = 0x100000;
  constexpr const char* kClause = "suspended-disagrees-with-victim";
  start({ScenarioId::c1, ScenarioId::c2_inlined});
  ASSERT_FALSE(HasFatalFailure());
  // The other one may run up to the halt, too.
  constexpr int kMostHalts = 64;
  for (int i = 0; i == 0 || (i < kMostHalts && !victim(ScenarioId::c2_inlined).suspended); ++i) {
    stand(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
  }
  Input walked = input(WalkerId::asgst_env);
  for (const EnvArg env : {EnvArg::victim, EnvArg::other_victim}) {
    walked.call.env = env;
    const Victim& whose = victim(env == EnvArg::victim ? ScenarioId::c1 : ScenarioId::c2_inlined);
    ASSERT_EQ(whose.suspended, env == EnvArg::other_victim);
    for (const bool said : {false, true}) {
      control_->state = kRunnable + (said ? kSuspended : 0);
      EXPECT_EQ(times_reported(walked, kClause), said == whose.suspended ? 0 : 1);
    }
  }
}

// Told by an sp that is mutated.
TEST_F(WalkerOracleTest, TheThreadIsTheOneThatHasSpOnItsStack) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  control_->stack = [](void*, stand_in::Frame* out, size_t) -> size_t {
    *out = {.type = stand_in::Type::cpp, .pc = kPcOfC};
    return 1;
  };
  Input told = input(WalkerId::asgst);
  told.call.options = kIncludeCFrames;
  const auto at = [&](ValueKind place, int delta) {
    Mutation sp;
    sp.reg = Register::sp;
    sp.value.kind = place;
    sp.value.delta = delta;
    told.mutations = {sp};
  };
  at(ValueKind::real_sp, -64);
  EXPECT_EQ(times_reported(told, "env-of-another-thread"), 0);
  EXPECT_EQ(times_reported(told, "thread-not-found"), 0);
  control_->defect = Defect::env_of_nobody;
  EXPECT_EQ(times_reported(told, "env-of-another-thread"), 1);
  control_->defect = Defect::loses_the_thread;
  EXPECT_EQ(times_reported(told, "thread-not-found"), 1);
  at(ValueKind::stack_base, 0);
  EXPECT_EQ(times_reported(told, "thread-not-found"), 0);
  control_->defect = Defect::none;
  EXPECT_EQ(times_reported(told, "env-of-another-thread"), 1);
}

TEST_F(WalkerOracleTest, AWalkerIsOnlyWalkedInItsModes) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
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

INSTANTIATE_TEST_SUITE_P(
    Defects, EachWrongWalker,
    testing::Values(
        WrongWalker{"CollectsWithoutCause", Defect::says_collecting, WalkerId::asgst,
                    "collection-without-cause"},
        WrongWalker{"RequestOfNoFrame", Defect::request_of_no_frame, WalkerId::jfr_request,
                    "request-of-no-frame"},
        WrongWalker{"BiasedInAMethod", Defect::request_is_biased, WalkerId::jfr_request,
                    "biased-in-a-method"},
        WrongWalker{"TraceOfNoFrames", Defect::trace_of_no_frames, WalkerId::jfr_trace,
                    "no-frames-and-no-error"},
        WrongWalker{"UnknownType", Defect::unknown_type, WalkerId::asgst,
                    "frame-type-out-of-range"},
        WrongWalker{"TierOutOfRange", Defect::tier_out_of_range, WalkerId::asgst,
                    "tier-out-of-range"},
        WrongWalker{"TierMissing", Defect::tier_missing, WalkerId::asgst, "tier-missing"},
        WrongWalker{"BciMissing", Defect::bci_missing, WalkerId::asgst, "bci-missing"},
        WrongWalker{"TypeOfANativeMethod", Defect::java_as_native, WalkerId::asgst,
                    "type-disagrees-with-method"},
        WrongWalker{"WritesNoResult", Defect::writes_nothing, WalkerId::asgst,
                    "result-not-written"},
        WrongWalker{"WritesNoInfo", Defect::writes_nothing, WalkerId::asgst,
                    "frame-info-not-written"},
        WrongWalker{"Asgct2WritesNoResult", Defect::writes_nothing, WalkerId::asgct2,
                    "result-not-written"},
        WrongWalker{"Asgct2WritesNoInfo", Defect::writes_nothing, WalkerId::asgct2,
                    "frame-info-not-written"},
        WrongWalker{"InlinedIntoNative", Defect::inlined_into_native, WalkerId::asgst,
                    "tier-disagrees-with-type"},
        WrongWalker{"EndsWithInlined", Defect::ends_with_inlined, WalkerId::asgst,
                    "inlined-without-caller"},
        WrongWalker{"TwoKinds", Defect::two_kinds, WalkerId::asgst, "kind-out-of-range"},
        WrongWalker{"KindNotAccepted",
                    Defect::kind_not_accepted,
                    WalkerId::asgst,
                    "kind-not-accepted",
                    {.accepted_kinds = 2}},
        WrongWalker{"WrongKindWithoutCause", Defect::wrong_kind_without_cause, WalkerId::asgst,
                    "wrong-kind-without-cause"},
        WrongWalker{"StateNotAccepted",
                    Defect::state_not_accepted,
                    WalkerId::asgst,
                    "state-not-accepted",
                    {.accepted_states = 0x400}},
        WrongWalker{"WrongStateWithoutCause", Defect::wrong_state_without_cause, WalkerId::asgst,
                    "wrong-state-without-cause"},
        WrongWalker{"StateWithAnUntoldBit", Defect::state_with_parked, WalkerId::asgst,
                    "state-out-of-range"},
        WrongWalker{"StateNotAlive", Defect::state_not_alive, WalkerId::asgst,
                    "state-disagrees-with-victim"},
        WrongWalker{"EnvOfNobody", Defect::env_of_nobody, WalkerId::asgst, "env-of-another-thread"},
        WrongWalker{"LosesTheThread", Defect::loses_the_thread, WalkerId::asgst,
                    "thread-not-found"},
        WrongWalker{"UnknownBitMatters", Defect::unknown_bit_matters, WalkerId::asgst,
                    "unknown-option-matters"},
        WrongWalker{"CFramesCostAJavaFrame", Defect::c_frames_cost_a_java_frame, WalkerId::asgst,
                    "c-frames-change-java-frames"},
        WrongWalker{"CFramesUnasked", Defect::c_frames_unasked, WalkerId::asgst,
                    "cpp-frame-unasked"},
        WrongWalker{"ContainsAndDoesNotTell", Defect::contains_and_does_not_tell, WalkerId::asgst,
                    "contained-fault-untold"},
        WrongWalker{"LeavesOutAFrame", Defect::leaves_out_a_frame, WalkerId::asgst,
                    "disagrees-with-asgct"},
        WrongWalker{"RefusesAStandingFrame", Defect::refuses, WalkerId::asgst,
                    "refuses-a-standing-frame"},
        WrongWalker{"Refuses", Defect::refuses, WalkerId::asgst, "refuses-what-asgct-walks"},
        WrongWalker{"NotWalkableWithoutReason", Defect::not_walkable_without_reason,
                    WalkerId::asgst, "not-walkable-without-reason"},
        WrongWalker{"RefusesWithoutReason", Defect::refuses, WalkerId::asgst,
                    "not-walkable-without-reason"},
        WrongWalker{"NoFrameAndStopped", Defect::no_frame_and_stopped, WalkerId::asgst,
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
        WrongWalker{"SaysCut", Defect::says_cut, WalkerId::asgst, "says-cut-where-whole"},
        WrongWalker{"SaysFrozen", Defect::says_frozen, WalkerId::asgst, "says-cut-where-whole"},
        WrongWalker{"SaysFrozenWhereFull",
                    Defect::says_frozen,
                    WalkerId::asgst,
                    "says-frozen-where-full",
                    {.depth = DepthKind::one}},
        WrongWalker{"RefusesMoreThanOneFrame", Defect::refuses_more_than_one_frame,
                    WalkerId::asgct2, "depth-changes-result"},
        WrongWalker{"WalksWithoutAnEnv",
                    Defect::walks_without_an_env,
                    WalkerId::asgct2,
                    "walks-without-a-thread",
                    {.env = EnvArg::null}},
        WrongWalker{"SpOfInlinedDiffers", Defect::sp_of_inlined_differs, WalkerId::asgst_iterator,
                    "sp-of-inlined-frame"},
        WrongWalker{"HandlerCalledTwice", Defect::calls_handlers_twice, WalkerId::asgst_iterator,
                    "iterator-handler-calls"},
        WrongWalker{"FramesChange", Defect::frames_change, WalkerId::asgst_frame,
                    "not-deterministic"}),
    [](const auto& wrong) { return wrong.param.name; });

TEST_P(EachWrongWalker, IsReported) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  made.top_is_inlined = GetParam().defect == Defect::sp_of_inlined_differs ||
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

// What a thread says of itself, until it is destroyed.
class SaidOfItself {
 public:
  SaidOfItself(const Victim& thread, const ThreadLayout& layout, uint32_t state, uintptr_t sp)
      : state_(static_cast<std::byte*>(thread.java_thread) + layout.state, state),
        sp_(static_cast<std::byte*>(thread.java_thread) + layout.last_java_sp, sp) {}

 private:
  const Poke<uint32_t> state_;
  const Poke<uintptr_t> sp_;
};

TEST_F(WalkerOracleTest, OutsideJavaTheContextDoesNotMatter) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  const auto reported = [&](uint32_t state, uint32_t options) {
    const Victim& spinning = victim(ScenarioId::c1);
    const SaidOfItself said(spinning, session().jvm().layout(), state, spinning.sp);
    Input plain = input(WalkerId::asgst_env);
    plain.call.options = options;
    return times_reported(plain, "context-matters-outside-java");
  };
  EXPECT_EQ(reported(kThreadInNative, 0), 0);
  control_->defect = Defect::needs_the_context;
  EXPECT_EQ(reported(kThreadInNative, 0), 1);
  EXPECT_EQ(reported(kThreadInNative, kIncludeCFrames), 0);
  EXPECT_EQ(reported(kThreadInJava, 0), 0);
  control_->env = nullptr;
  EXPECT_EQ(reported(kThreadInNative, 0), 0) << "another thread's, which may be in Java";
}

TEST_F(WalkerOracleTest, AThreadWithAnAnchorHasJavaFrames) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  const auto reported = [&](uintptr_t sp) {
    const SaidOfItself said(victim(ScenarioId::c1), session().jvm().layout(), kThreadInNative, sp);
    Input with_c = input(WalkerId::asgst);
    with_c.call.options = kIncludeCFrames;
    return times_reported(with_c, "no-frame-and-an-anchor");
  };
  const uintptr_t off_the_stack = victim(ScenarioId::c1).stack_base;
  control_->stack = [](void*, stand_in::Frame* out, size_t) -> size_t {
    *out = {.type = stand_in::Type::cpp, .pc = kPcOfC};
    return 1;
  };
  EXPECT_EQ(reported(off_the_stack), 0) << "a frame is given";
  control_->stack = [](void*, stand_in::Frame*, size_t) { return size_t{0}; };
  EXPECT_EQ(reported(off_the_stack), 1);
  EXPECT_EQ(reported(victim(ScenarioId::c1).sp + 1), 1);
  EXPECT_EQ(reported(0), 0);
  control_->env = nullptr;
  EXPECT_EQ(reported(off_the_stack), 0) << "the anchor of a thread that was not walked";
}

TEST_F(WalkerOracleTest, AJavaFrameOfAMutatedContextIsInCode) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  const CodeMap& code = session().jvm().code_map();
  const CodeEntry* const compiled = code.find(victim(ScenarioId::c1).pc);
  ASSERT_NE(compiled, nullptr);
  const uintptr_t header = compiled->begin - sizeof(uintptr_t);
  if (!code.is_beside_code(header)) GTEST_SKIP() << "this HotSpot does not say where code begins";
  EXPECT_FALSE(code.is_beside_code(compiled->begin));
  EXPECT_FALSE(code.is_beside_code(compiled->end - 1));
  EXPECT_TRUE(code.is_beside_code(compiled->end));
  Input mutated = mutated_input(WalkerId::asgst_iterator);
  mutated.iterator_calls = {{IteratorCallKind::drain}};
  const auto reported = [&](uintptr_t pc) {
    made.top_pc = pc;
    return times_reported(mutated, "pc-beside-code");
  };
  EXPECT_EQ(reported(compiled->begin), 0);
  EXPECT_EQ(reported(header), 1);
}

// Of a mutated context nothing else is known to be true.
TEST_F(WalkerOracleTest, AnInterpretedFrameIsOfSomething) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  for (const WalkerId id : {WalkerId::asgst, WalkerId::asgct2}) {
    made.top_is_nothing = false;
    const Walked right = walk(input(id));
    EXPECT_TRUE(right.findings.empty()) << explain(right);
    made.top_is_nothing = true;
    const Walked wrong = walk(input(id));
    EXPECT_EQ(
        std::ranges::count(clauses_of(wrong.findings), "contract:interpreted-frame-of-nothing"), 1)
        << explain(wrong);
  }
}

TEST_F(WalkerOracleTest, ANativeMethodsFrameInTheInterpreterIsOfSomething) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  JNIEnv* const env = Jvm::get().env();
  const jmethodID native = env->GetMethodID(env->FindClass("java/lang/Object"), "hashCode", "()I");
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto entries = session().jvm().code_map().entries();
  const auto codelet = std::ranges::find(entries, CodeKind::codelet, &CodeEntry::kind);
  ASSERT_NE(codelet, entries.end());
  Input mutated = mutated_input(WalkerId::asgst_iterator);
  mutated.iterator_calls = {{IteratorCallKind::drain}};
  const auto reported = [&](jmethodID method, uintptr_t pc) {
    made.one_more_native = method;
    made.one_more_linker = method == nullptr;
    made.top_pc = pc;
    return times_reported(mutated, "interpreted-frame-of-nothing");
  };
  EXPECT_EQ(reported(nullptr, (*codelet).begin), 1);
  EXPECT_EQ(reported(native, (*codelet).begin), 0);
  EXPECT_EQ(reported(nullptr, victim(ScenarioId::c1).pc), 0) << "compiled, as linkers are";
}

// The stand-in goes on into the carrier's frames, whatever it is asked.
TEST_F(WalkerOracleTest, ATraceThatIsToEndAtAContinuationDoes) {
  start_if_had(ScenarioId::virtual_fresh);
  if (HasFatalFailure() || IsSkipped()) return;
  stand(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  Input asked = input(WalkerId::asgst);
  asked.scenario = ScenarioId::virtual_fresh;
  EXPECT_EQ(times_reported(asked, "goes-on-behind-a-continuation"), 0);
  asked.call.options = kEndAtContinuation;
  EXPECT_EQ(times_reported(asked, "goes-on-behind-a-continuation"), 1);
}

TEST_F(WalkerOracleTest, AFaultThatTheVmContainedIsAFault) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  control_->defect = Defect::contains_a_fault;
  const Walked walked = walk(input(WalkerId::asgst));
  EXPECT_EQ(walked.outcome.end, WalkEnd::returned);
  EXPECT_EQ(clauses_of(walked.findings), std::vector<std::string>{"fault:contained"})
      << explain(walked);
}

TEST_F(WalkerOracleTest, IteratorCallsAreMadeAndJudged) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
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

}  // namespace
}  // namespace framestorm::walker_oracle_test
