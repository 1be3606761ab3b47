// What walkers have to agree on.
#include <algorithm>

#include "harness/oracles/walker_oracle_fixture.h"

namespace framestorm::walker_oracle_test {
namespace {

using jvm_test::clauses_of;
using jvm_test::Walked;
using stand_in::Defect;

TEST_F(WalkerOracleTest, BelowAStubAsgctMayGiveOtherInlinedFrames) {
  start({ScenarioId::c1, ScenarioId::exception_unwind});
  ASSERT_FALSE(HasFatalFailure());
  const auto disagreements = [this](ScenarioId scenario) {
    Input plain = input(WalkerId::asgst);
    plain.scenario = scenario;
    return times_reported(plain, "disagrees-with-asgct");
  };
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(disagreements(ScenarioId::c1), 0);
  made.one_more_inlined = true;
  EXPECT_EQ(disagreements(ScenarioId::c1), 1);
  session().release_world();

  // In the VM, which looks for the handler of an exception in compiled code.
  made.one_more_inlined = false;
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
  made.one_more_inlined = true;
  EXPECT_EQ(disagreements(ScenarioId::exception_unwind), 0);
  made.caller_missing = true;
  EXPECT_EQ(disagreements(ScenarioId::exception_unwind), 1);
}

// AsyncGetCallTrace does not give it, so that a trace of one frame has none of AsyncGetCallTrace's.
TEST_F(WalkerOracleTest, AMethodBeingEnteredMayBeAllThatATraceHasRoomFor) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  made.one_more_entered = true;
  Input plain = input(WalkerId::asgst);
  plain.call.options = 0;
  for (const DepthKind depth : {DepthKind::normal, DepthKind::one}) {
    plain.call.depth = depth;
    const auto clauses = clauses_of(walk(plain).findings);
    EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgct"), 0) << name_of(depth);
  }
  // Of three registers the bci is a guess, too.
  const auto entered_with = [this](int32_t bci, WalkerId walker) {
    made.bci_of_entered = bci;
    const auto clauses = clauses_of(walk(input(walker)).findings);
    return std::ranges::count(clauses, "contract:disagrees-with-asgct");
  };
  EXPECT_EQ(entered_with(1, WalkerId::asgst_frame), 0);
  EXPECT_EQ(entered_with(1, WalkerId::asgst), 1);
  made.bci_of_entered = 0;
  made.one_more_entered = false;
  made.caller_missing = true;
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
    made.one_more_native = on_top;
    return std::ranges::count(clauses_of(walk(input(WalkerId::asgst)).findings),
                              std::string("contract:disagrees-with-") + with);
  };
  EXPECT_EQ(disagreements(intrinsic, "asgst-queue"), 0);
  EXPECT_EQ(disagreements(intrinsic, "asgct"), 1);
  EXPECT_EQ(disagreements(another, "asgst-queue"), 1);
  made.one_more_linker = true;
  for (const char* const right : {"asgst-queue", "asgct2", "asgct2-packed", "asgst-iterator"}) {
    EXPECT_EQ(disagreements(nullptr, right), 0) << right;
  }
  EXPECT_EQ(disagreements(nullptr, "asgct"), 1);
  // The packed frame's method is that of the code.
  for (const CodeEntry& entry : session().jvm().code_map().entries()) {
    if (entry.kind == CodeKind::nmethod && is_method_handle_intrinsic(entry.name)) {
      made.native_pc = entry.begin;
    }
  }
  EXPECT_EQ(disagreements(nullptr, "asgct2-packed"), 0);
}

TEST_F(WalkerOracleTest, FindingsOfOracleWalksSayWhatWasWalked) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  control_->defect = Defect::contains_a_fault;
  const Walked walked = walk(input(WalkerId::asgct2));
  ASSERT_FALSE(walked.findings.empty()) << "the agreement oracle walks with asgst, too";
  for (const Finding& finding : walked.findings) {
    EXPECT_NE(finding.input.walker, WalkerId::asgct2) << finding.detail;
    EXPECT_EQ(finding.input.scenario, ScenarioId::c1);
  }
}

}  // namespace
}  // namespace framestorm::walker_oracle_test
