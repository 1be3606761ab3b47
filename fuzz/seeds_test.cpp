// The checked-in seeds: legal, each within what its target mutates, every scenario in every target.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "fuzz/mutator_profile.h"
#include "fuzz/mutator_values.h"
#include "harness/input/seed_folder.h"
#include "harness/input/text.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

class Seeds : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    inputs_ = load_seed_folders({std::filesystem::path(FRAMESTORM_SEEDS) / GetParam()});
  }
  std::vector<Input> inputs_;
};

INSTANTIATE_TEST_SUITE_P(Targets, Seeds, testing::ValuesIn(target_names()),
                         [](const auto& target) { return target.param; });

TEST_P(Seeds, HaveEveryScenario) {
  std::set<ScenarioId> scenarios;
  for (const Input& input : inputs_) {
    scenarios.insert(input.scenario);
  }
  EXPECT_EQ(scenarios.size(), static_cast<size_t>(ScenarioId::count));
}

TEST_P(Seeds, StayInTheProfileOfTheirTarget) {
  const MutatorProfile* profile = find_mutator_profile(GetParam());
  ASSERT_NE(profile, nullptr);
  for (const Input& input : inputs_) {
    EXPECT_TRUE(profile->call_args ||
                (input.call.context == ContextArg::victim && input.call.env == EnvArg::victim))
        << to_text(input);
    EXPECT_NE(std::ranges::find(profile->walkers, input.walker), profile->walkers.end())
        << to_text(input);
    const WalkerTraits& traits = traits_of(input.walker);
    EXPECT_TRUE(traits.walks_in(input.mode)) << to_text(input);
    EXPECT_EQ(input.call.options & ~traits.options, 0U) << to_text(input);
    EXPECT_TRUE(traits.masks || input.call.accepted_kinds + input.call.accepted_states == 0)
        << to_text(input);
    EXPECT_EQ(input.iterator_calls.empty(), !profile->iterator_calls) << to_text(input);
    EXPECT_EQ(input.queue_calls.empty(), !profile->queue_calls) << to_text(input);
    for (const Mutation& mutation : input.mutations) {
      constexpr auto kKinds = static_cast<size_t>(MutationKind::count);
      const std::array<bool, kKinds> allowed = {
          profile->registers && (!profile->frame_triple_only || mutation.reg <= Register::fp),
          profile->stack_words, profile->thread_fields};
      EXPECT_TRUE(allowed.at(static_cast<size_t>(mutation.kind))) << to_text(input);
    }
  }
}

TEST_P(Seeds, DifferFromEachOther) {
  std::set<std::string> texts;
  for (const Input& input : inputs_) {
    EXPECT_TRUE(texts.insert(to_text(input)).second) << "twice:\n" << to_text(input);
  }
}

TEST_P(Seeds, HaveOneUnmutatedWalkAndOtherwiseChangeSomething) {
  const auto unmutated = std::ranges::count_if(inputs_, [](const Input& input) {
    return std::ranges::all_of(input.mutations, is_no_op) && input.call == CallArgs{} &&
           input.iterator_calls.size() + input.queue_calls.size() <= 1;
  });
  EXPECT_EQ(unmutated, 1);
}

}  // namespace
}  // namespace framestorm
