// Profilers on a live JVM: the stand-in, right and with each defect that it can have.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "harness/base/test_folder.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/executor/recorded_trace.h"
#include "harness/guard/signal_table.h"
#include "harness/walkers/profiler.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

using Clauses = std::vector<std::string>;

class ProfilerTest : public JvmTest {
 protected:
  void start_with(const std::string& defect, ScenarioId scenario = ScenarioId::c1) {
    SessionOptions options;
    options.profiler = FRAMESTORM_STAND_IN_PROFILER "=" + defect;
    options.scenarios = {scenario};
    start_session(options);
    if (HasFatalFailure()) throw SetupError("no session");
  }

  // JFR's CPU-time sampler, of JDK 25 and later.
  void start_with_jfr(ScenarioId scenario) {
    SessionOptions options;
    options.profiler = ProfilerSpec::kJvm;
    options.scenarios = {scenario};
    options.jvm.extra_args = {
        "-XX:StartFlightRecording:settings=none,+jdk.CPUTimeSample#enabled=true,"
        "+jdk.CPUTimeSample#throttle=10ms",
        "-XX:FlightRecorderOptions:repository=" + repository_.path().string()};
    start_session(options);
  }

  static Input input(ScenarioId scenario = ScenarioId::c1) {
    Input input;
    input.scenario = scenario;
    input.walker = WalkerId::profiler;
    return input;
  }
  // One whose frame pointer leads nowhere.
  static Input faulting_input() {
    Input faulting = input();
    Mutation mutation;
    mutation.reg = Register::fp;
    mutation.value.kind = ValueKind::raw;
    mutation.value.raw = 4001;
    faulting.mutations.push_back(mutation);
    return faulting;
  }

  Walked walk_at_a_halt(const Input& input) {
    halt_in_java(ScenarioId::c1);
    return walk(input);
  }

  // Clauses of a walk that its frame pointer leads astray.
  Clauses clauses_of_a_fault(const std::string& defect) {
    start_with(defect);
    const Walked walked = walk_at_a_halt(faulting_input());
    SCOPED_TRACE(explain(walked));
    return clauses_of(walked.findings);
  }

  // Of what was stored of the scenario's last walk.
  RecordedVerdict recorded(ScenarioId scenario) {
    let_store(session(), scenario);
    Profiler& profiler = *session().profiler();
    return judge_recorded(profiler.new_traces(), victim(scenario), profiler.traits());
  }
  std::string_view recorded_verdict(ScenarioId scenario) { return recorded(scenario).verdict; }
  // The same of a stand-in with this defect.
  RecordedVerdict recorded_with(const std::string& defect) {
    start_with(defect);
    walk_at_a_halt(input());
    return recorded(ScenarioId::c1);
  }

  uint64_t stored() { return session().profiler()->stored(/*at_the_end=*/true).value_or(0); }

  TestFolder repository_;  // of JFR, which leaves it behind where a process ends
};

TEST_F(ProfilerTest, ItsHandlerIsFoundMutedAndCalledAsTheKernelWould) {
  start_with("");
  ASSERT_NE(session().profiler(), nullptr);
  EXPECT_EQ(session().profiler()->signal_number(), SIGPROF);
  EXPECT_TRUE(session().profiler()->has_own_siginfo());
  const uint64_t before = stored();
  const Walked walked = walk_at_a_halt(input());
  EXPECT_EQ(explain(walked), "result 0");
  session().release_world();
  EXPECT_EQ(stored(), before + 1);
}

TEST_F(ProfilerTest, OneThatWalksFromItsThreadIsHeldAndAskedForTheVictim) {
  start_with("thread,");
  ASSERT_TRUE(session().profiler()->has_own_thread());
  EXPECT_EQ(session().profiler()->signal_number(), SIGUSR2);
  const uint64_t before = stored();
  EXPECT_EQ(explain(walk_at_a_halt(input())), "result 0");
  EXPECT_EQ(explain(walk(input())), "result 0");
  session().release_world();
  EXPECT_EQ(stored(), before + 2);
}

TEST_F(ProfilerTest, AMarkThatItsThreadTakesBackLateIsNoChangeOfTheVictim) {
  EXPECT_EQ(clauses_of_a_fault("thread,slow"), Clauses{});
}

TEST_F(ProfilerTest, AThreadThatItsOwnThreadDoesNotStopIsPassedOver) {
  start_with("thread,", ScenarioId::gc_thread);  // it knows the threads of Java only
  halt(ScenarioId::gc_thread);
  Input other = input();
  other.scenario = ScenarioId::gc_thread;
  EXPECT_EQ(walk(other).outcome.result, -1);
}

// By its handler, or from a thread of its own.
class EachProfiler : public ProfilerTest, public testing::WithParamInterface<const char*> {
 protected:
  void start_with(const std::string& defect) { ProfilerTest::start_with(GetParam() + defect); }
  Clauses clauses_of_a_fault(const std::string& defect) {
    return ProfilerTest::clauses_of_a_fault(GetParam() + defect);
  }
};
INSTANTIATE_TEST_SUITE_P(Walks, EachProfiler, testing::Values("", "thread,"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           return *tested.param == 0 ? "ByItsHandler" : "FromItsThread";
                         });

TEST_P(EachProfiler, AFaultThatItContainsIsCountedAndNoFinding) {
  start_with("");
  const Walked walked = walk_at_a_halt(faulting_input());
  EXPECT_EQ(explain(walked), "result 0");
  EXPECT_EQ(walked.outcome.contained_faults, 1U);
  EXPECT_FALSE(walked.outcome.not_reusable);
  const auto places = Guard::contained_places();
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].second, 1U);
}

TEST_P(EachProfiler, AWalkThatDoesNotEndIsInterrupted) {
  EXPECT_EQ(clauses_of_a_fault("endless"), Clauses{"hang:"});
}

TEST_P(EachProfiler, AWalkThatWouldEndTheProcessIsAFinding) {
  EXPECT_EQ(clauses_of_a_fault("abort"), Clauses{"terminal_call:abort"});
}

TEST_P(EachProfiler, AFaultThatItPassesOnIsAFindingAndEndsTheProcessesUse) {
  start_with("unrecovered");
  const Walked walked = walk_at_a_halt(faulting_input());
  EXPECT_EQ(clauses_of(walked.findings), Clauses{"fault:"}) << explain(walked);
  EXPECT_EQ(walked.outcome.contained_faults, 0U);
  EXPECT_TRUE(walked.outcome.not_reusable);
}

TEST_P(EachProfiler, ARecoveryThatLeavesTheMaskChangedIsFound) {
  EXPECT_EQ(clauses_of_a_fault("mask"), Clauses{"contract:fault-leaves-state"});
  uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  EXPECT_EQ(mask >> (SIGUSR1 - 1) & 1, 0U);
}

TEST_P(EachProfiler, ARecoveryThatKeepsALockIsFound) {
  start_with("lock");
  const Walked walked = walk_at_a_halt(faulting_input());
  const auto clauses = clauses_of(walked.findings);
  EXPECT_TRUE(std::ranges::count(clauses, "contract:fault-leaves-state")) << explain(walked);
  EXPECT_TRUE(walked.outcome.not_reusable);
}

TEST_P(EachProfiler, AnAllocationInTheHandlerIsFound) {
  const auto clauses = clauses_of_a_fault("malloc");
  EXPECT_TRUE(std::ranges::count(clauses, "unsafe_call:malloc"));
}

TEST_P(EachProfiler, OneThatStoresNothingHasCountedNothing) {
  start_with("nothing");
  walk_at_a_halt(input());
  session().release_world();
  EXPECT_EQ(stored(), 0U);
}

TEST_F(ProfilerTest, OneWithoutMetricsIsAskedForItsSummary) {
  start_with("old");
  const uint64_t before = stored();
  walk_at_a_halt(input());
  session().release_world();
  EXPECT_FALSE(session().profiler()->stored(/*at_the_end=*/false).has_value());
  EXPECT_EQ(stored(), before + 1);
}

TEST_F(ProfilerTest, ItsTracesAreHeldAgainstTheScenariosFrames) {
  EXPECT_EQ(recorded_with("").verdict, "right");
}

TEST_F(ProfilerTest, ATraceWithoutItsInnermostFrameIsNotRight) {
  const RecordedVerdict judged = recorded_with("drop");
  EXPECT_EQ(judged.verdict, "wrong");
  EXPECT_EQ(judged.difference, "lacks its innermost frames");
}

TEST_F(ProfilerTest, ATraceWithAFrameTooManyIsWrongInAnotherWay) {
  const RecordedVerdict judged = recorded_with("twice");
  EXPECT_EQ(judged.verdict, "wrong");
  EXPECT_EQ(judged.difference, "has frames too many further out");
}

// Of the JDK under test, which has not started yet.
int jdk_feature() {
  std::ifstream release(std::filesystem::path(std::getenv("FRAMESTORM_TEST_JDK")) / "release");
  constexpr std::string_view kKey = "JAVA_VERSION=\"";
  for (std::string line; std::getline(release, line);) {
    if (line.starts_with(kKey)) return std::atoi(line.c_str() + kKey.size());
  }
  return 0;
}

// JFR answers requests when the thread runs on, outside the guard. It has room for 20 of them.
TEST_F(ProfilerTest, JfrStoresAllThatIsLeftToItAndNothingOfAMutatedContext) {
  if (jdk_feature() < 25) GTEST_SKIP() << "its handler does not walk";
  start_with_jfr(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  uint64_t kept = 0;
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  loop([&] {
    for (int i = 0; i < 40; ++i) {
      EXPECT_FALSE(executor().execute(faulting_input()).kept);
      if (executor().execute(input()).kept) ++kept;
    }
  });
  EXPECT_GT(kept, 0U);
  session().release_world();
  // JFR's samples are stored by their thread, which is suspended between halts.
  session().victims().resume(ScenarioId::c1);
  while (stored() < kept) {  // ctest ends it
  }
  session().victims().pause(ScenarioId::c1);
  EXPECT_EQ(stored(), kept);
}

// Its events name the virtual thread, whose carrier walks.
TEST_F(ProfilerTest, JfrsTraceOfAVirtualThreadIsFoundAndJudged) {
  if (jdk_feature() < 25) GTEST_SKIP() << "its handler does not walk";
  start_with_jfr(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  session().profiler()->new_traces();  // from here on
  // A thread that is suspended while its samples are read stores them later.
  std::string_view verdict = RecordedVerdict::kMissing;
  for (int i = 0; i < 20 && verdict == RecordedVerdict::kMissing; ++i) {
    halt_in_java(ScenarioId::virtual_fresh);
    ASSERT_FALSE(HasFatalFailure());
    walk(input(ScenarioId::virtual_fresh));
    verdict = recorded_verdict(ScenarioId::virtual_fresh);
  }
  EXPECT_EQ(verdict, RecordedVerdict::kRight);
}

TEST_F(ProfilerTest, OneWithoutAHandlerIsRefused) {
  SessionOptions options;
  options.profiler = ProfilerSpec::kJvm;
  options.scenarios = {ScenarioId::c1};
  EXPECT_THROW(start_session(options), SetupError);
}

TEST(ProfilerSpecTest, FileAndOptionsAreSplitAtTheFirstEqualsSign) {
  const ProfilerSpec spec = ProfilerSpec::parse("./lib.so=start,event=wall");
  EXPECT_EQ(spec.library, "./lib.so");
  EXPECT_EQ(spec.options, "start,event=wall");
  EXPECT_TRUE(ProfilerSpec::parse("jvm").library.empty());
}

}  // namespace
}  // namespace framestorm
