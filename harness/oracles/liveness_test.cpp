// Liveness, on counts, and on a run with a walker that does nothing.
#include "harness/oracles/liveness.h"

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/executor/run_counts.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;

TEST(Liveness, AcceptsARunThatWalked) {
  EXPECT_TRUE(check_liveness({1000, 900, 100, 100}).empty());
  EXPECT_TRUE(check_liveness({1000, 900, 100, 90}).empty()) << "at the minimum";
}

TEST(Liveness, RefusesRunsThatShowNothing) {
  EXPECT_EQ(check_liveness({}).size(), 1U) << "no walk";
  EXPECT_EQ(check_liveness({1000, 0, 100, 100}).size(), 1U) << "no mutation";
  EXPECT_EQ(check_liveness({1000, 900, 0, 0}).size(), 1U) << "no unmutated walk";
  EXPECT_EQ(check_liveness({1000, 900, 100, 89}).size(), 1U) << "too few succeeded";
  EXPECT_EQ(check_liveness({1000, 0, 100, 0}).size(), 2U);
}

class LivenessTest : public JvmTest {
 protected:
  // A run of unmutated and mutated inputs, counted as the fuzz targets do.
  std::vector<std::string> run(WalkerId walker) {
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
    EXPECT_EQ(counts.walks(), 40U);
    return check_liveness(counts.liveness());
  }
};

TEST_F(LivenessTest, AWalkerThatDoesNothingDoesNotPass) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct),
                                                     [](const FakeWalk&) -> int32_t { return 0; }));
  halt_in_java(ScenarioId::c1);  // all walks of these runs are made at one halt
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(run(WalkerId::asgct).empty());
  EXPECT_EQ(run(WalkerId::plugin),
            std::vector<std::string>{"only 0 of 20 unmutated walks of Java scenarios gave frames"});
}

}  // namespace
}  // namespace framestorm
