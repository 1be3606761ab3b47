// Every checked-in seed reaches a walk, with all its mutations, on the JDK under test.
#include <algorithm>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/seed_folder.h"
#include "harness/input/text.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;
using jvm_test::Walked;

int reached;

class SeedWalk : public JvmTest, public testing::WithParamInterface<std::string> {
 protected:
  // Mutations that cannot apply to the scenario's kind of thread, on any JDK.
  size_t impossible(const Input& input) {
    if (victim(input.scenario).is_java_thread) return 0;
    return static_cast<size_t>(
        std::ranges::count(input.mutations, MutationKind::set_thread_field, &Mutation::kind));
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, SeedWalk,
                         testing::Values("fuzz_ucontext", "fuzz_frame", "fuzz_stack",
                                         "fuzz_thread_state", "fuzz_call", "fuzz_iterator",
                                         "fuzz_queue"),
                         [](const auto& target) { return target.param; });

TEST_P(SeedWalk, ReachesAWalk) {
  const auto seeds = load_seed_folders({std::filesystem::path(FRAMESTORM_SEEDS) / GetParam()});
  start_all();
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct),
                                                     [](const FakeWalk&) -> int32_t {
                                                       ++reached;
                                                       return -1;
                                                     }));
  for (Input seed : seeds) {
    if (session().unavailable().contains(seed.scenario)) {
      EXPECT_LT(session().jvm().feature(), scenario_info(seed.scenario).min_feature)
          << session().unavailable().at(seed.scenario);
      continue;
    }
    const std::string text = to_text(seed);
    // Whether the real walker survives it is for the fuzz targets.
    seed.walker = WalkerId::plugin;
    // A word at fp is on the stack only where the victim's fp is one: not at every halt.
    constexpr int kHalts = 20;
    size_t unresolved = SIZE_MAX;
    for (int i = 0; i < kHalts && unresolved > impossible(seed); ++i) {
      halt(seed.scenario, seed.halt);
      ASSERT_FALSE(HasFatalFailure()) << text;
      const int before = reached;
      const Walked walked = walk(seed);
      ASSERT_EQ(walked.outcome.status, Outcome::Status::walked) << text;
      EXPECT_GT(reached, before) << text;
      unresolved = walked.outcome.unresolved;
    }
    EXPECT_EQ(unresolved, impossible(seed)) << text;
  }
}

}  // namespace
}  // namespace framestorm
