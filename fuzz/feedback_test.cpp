#include "fuzz/feedback.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace framestorm {
namespace {

Outcome returned(int32_t result) {
  Outcome outcome;
  outcome.status = Outcome::Status::walked;
  outcome.result = result;
  return outcome;
}

Frame with_bci(int32_t bci) {
  Frame frame;
  frame.bci = bci;
  return frame;
}

Feedback::Ending ending(ScenarioId scenario, const Outcome& outcome,
                        const std::optional<Frame>& first = {},
                        const std::optional<Frame>& second = {}) {
  Input input;
  input.scenario = scenario;
  return Feedback::ending_of(input, outcome, first, second);
}

TEST(Feedback, TellsScenariosResultsAndFrameKindsApart) {
  const Frame java = with_bci(3);
  const Frame native = with_bci(-3);
  Outcome fault = returned(0);
  fault.end = WalkEnd::fault;
  const std::vector<Feedback::Ending> endings = {
      ending(ScenarioId::c1, returned(-5)),
      ending(ScenarioId::c1, returned(-6)),
      ending(ScenarioId::osr, returned(-5)),
      ending(ScenarioId::c1, returned(0)),
      ending(ScenarioId::c1, fault),
      ending(ScenarioId::c1, returned(1), java),
      ending(ScenarioId::c1, returned(1), native),
      ending(ScenarioId::c1, returned(2), java, native),
      ending(ScenarioId::c1, returned(2), native, java),
      ending(ScenarioId::c1, returned(900), java, java),
  };
  EXPECT_EQ(std::set(endings.begin(), endings.end()).size(), endings.size());
}

TEST(Feedback, TakesAnyResult) {
  for (const int32_t result : {INT32_MIN, -1000, INT32_MAX}) {
    EXPECT_NE(ending(ScenarioId::c1, returned(result)), Feedback::kNothing) << result;
  }
  EXPECT_EQ(ending(ScenarioId::c1, Outcome{}), Feedback::kNothing);
}

TEST(Feedback, ShowsEachEndingAsAFeatureOfItsOwn) {
  // Counter and range of its value: CounterToFeature of libFuzzer.
  const auto range = [](uint8_t value) {
    return value >= 128  ? 7
           : value >= 32 ? 6
           : value >= 16 ? 5
           : value >= 8  ? 4
           : value >= 4  ? 3
                         : value - 1;
  };
  std::map<std::pair<size_t, int>, Feedback::Ending> features;
  Feedback feedback;
  for (int32_t result = -15; result <= 0; ++result) {
    std::ranges::fill(Feedback::counters(), uint8_t{0});
    const Feedback::Ending told = ending(ScenarioId::c1, returned(result));
    feedback.tell(told);
    for (size_t i = 0; i < Feedback::kCounters; ++i) {
      if (const uint8_t value = Feedback::counters()[i]; value != 0) {
        EXPECT_TRUE(features.emplace(std::pair{i, range(value)}, told).second) << result;
      }
    }
  }
  EXPECT_EQ(features.size(), 16U);
}

TEST(Feedback, NotesWhatTheEngineWasNeverTold) {
  Feedback feedback;
  const Feedback::Ending a = ending(ScenarioId::c1, returned(-5));
  EXPECT_TRUE(feedback.note(a));
  EXPECT_TRUE(feedback.note(a));
  feedback.tell(a);
  EXPECT_FALSE(feedback.note(a));
  EXPECT_FALSE(feedback.note(Feedback::kNothing));
  feedback.tell(Feedback::kNothing);
  EXPECT_EQ(feedback.ends_of(ScenarioId::c1), 1U);
  feedback.note(ending(ScenarioId::c1, returned(-6)));
  EXPECT_EQ(feedback.ends_of(ScenarioId::c1), 2U);
  EXPECT_EQ(feedback.ends_of(ScenarioId::osr), 0U);
}

}  // namespace
}  // namespace framestorm
