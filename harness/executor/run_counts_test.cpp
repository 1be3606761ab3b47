// The figures of a run, with a walker that does nothing beside one that works.
#include "harness/executor/run_counts.h"

#include <nlohmann/json.hpp>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;

class RunCountsTest : public JvmTest {
 protected:
  // A run of unmutated and mutated inputs, counted as the fuzz targets do.
  nlohmann::json run(WalkerId walker) {
    RunCounts counts;
    loop([&] {
      Input input;
      input.scenario = ScenarioId::c1;
      input.walker = walker;
      for (int i = 0; i < 40; ++i) {
        input.mutations.resize(static_cast<size_t>(i % 2));  // pc = real
        counts.note(input, executor().execute(input));
      }
    });
    return counts.summary();
  }
};

TEST_F(RunCountsTest, AWalkerThatDoesNothingIsTold) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct),
                                                     [](const FakeWalk&) -> int32_t { return 0; }));
  halt_in_java(ScenarioId::c1);  // all walks of these runs are made at one halt
  ASSERT_FALSE(HasFatalFailure());
  const auto right = run(WalkerId::asgct);
  const auto idle = run(WalkerId::plugin);
  for (const auto& summary : {right, idle}) {
    EXPECT_EQ(summary["walks"], 40);
    EXPECT_EQ(summary["unmutated"], 20);
    EXPECT_EQ(summary["unmutated_java"], 20);
    EXPECT_EQ(summary["by_walker"].size(), 1U);
  }
  EXPECT_GE(right["unmutated_java_succeeded"], 18);
  EXPECT_EQ(idle["unmutated_java_succeeded"], 0);
  EXPECT_EQ(idle["error_codes"]["0"], 40);
  EXPECT_EQ(idle["by_scenario"]["c1"]["unmutated_errors"]["0"], 20);
}

TEST(RunCountsOfAProfilerTest, WalksThatItHasNotToldOfSayNothingOfItsLiveness) {
  Input input;
  input.scenario = ScenarioId::c1;
  input.walker = WalkerId::profiler;
  Outcome outcome;
  outcome.status = Outcome::Status::walked;
  outcome.unmutated = true;
  RunCounts counts;
  const auto note = [&](int times) {
    for (int i = 0; i < times; ++i) counts.note(input, outcome);
  };
  note(10);
  EXPECT_EQ(counts.summary()["unmutated_java"], 0);
  counts.note_stored(10, /*only_good=*/false);
  // The process dies of the next: what it stored until then is not known.
  note(30);
  nlohmann::json summary = counts.summary();
  EXPECT_EQ(summary["unmutated_java"], 40);
  EXPECT_EQ(summary["unmutated_java_succeeded"], 40);
  EXPECT_EQ(summary["by_walker"]["profiler"]["counted"], 10);
  // What was taken back from it counts neither way.
  outcome.kept = false;
  note(40);
  counts.note_stored(10, /*only_good=*/false);
  summary = counts.summary();
  EXPECT_EQ(summary["unmutated_java"], 40);
  EXPECT_EQ(summary["unmutated_java_succeeded"], 10);
}

TEST(RunCountsOfAProfilerTest, OneThatStoresWhatItCouldWalkHasToStoreTheUnmutatedOnes) {
  Input input;
  input.scenario = ScenarioId::c1;
  input.walker = WalkerId::profiler;
  Outcome outcome;
  outcome.status = Outcome::Status::walked;
  RunCounts counts;
  for (const int32_t result : {0, -1}) {  // -1: its thread passed over the victim
    outcome.result = result;
    for (int i = 0; i < 40; ++i) {
      outcome.unmutated = i < 10;
      counts.note(input, outcome);
    }
  }
  counts.note_stored(12, /*only_good=*/true);
  EXPECT_EQ(counts.summary()["unmutated_java"], 10);
  EXPECT_EQ(counts.summary()["unmutated_java_succeeded"], 10);
  EXPECT_EQ(counts.summary()["by_walker"]["profiler"]["not_called"], 40);
  counts.note_stored(3, /*only_good=*/true);
  EXPECT_EQ(counts.summary()["unmutated_java_succeeded"], 3);
}

}  // namespace
}  // namespace framestorm
