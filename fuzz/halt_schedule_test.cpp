#include "fuzz/halt_schedule.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace framestorm {
namespace {

const std::vector<ScenarioId> kScenarios = {ScenarioId::c1, ScenarioId::osr, ScenarioId::parked};
const std::vector<Mode> kModes = {Mode::same_thread, Mode::separate_thread};

TEST(HaltSchedule, HaveEachPairOncePerRound) {
  HaltSchedule schedule(kScenarios, kModes, 1);
  for (int round = 0; round < 10; ++round) {
    std::set<std::pair<ScenarioId, Mode>> seen;
    for (size_t i = 0; i < 6; ++i) seen.insert(schedule.next([](ScenarioId) { return false; }));
    EXPECT_EQ(seen.size(), 6U);
  }
}

TEST(HaltSchedule, GiveASaturatedScenarioOneRoundInSo) {
  HaltSchedule schedule(kScenarios, kModes, 1);
  std::map<ScenarioId, unsigned> count;
  // Ten times as many rounds as it takes: each has both modes of the other two.
  constexpr unsigned kRounds = 10 * HaltSchedule::kSaturatedShare;
  for (unsigned i = 0; i < kRounds * 4 + kRounds / HaltSchedule::kSaturatedShare * 2; ++i) {
    ++count[schedule.next([](ScenarioId id) { return id == ScenarioId::parked; }).first];
  }
  EXPECT_EQ(count[ScenarioId::c1], 2 * kRounds);
  EXPECT_EQ(count[ScenarioId::osr], 2 * kRounds);
  EXPECT_EQ(count[ScenarioId::parked], 2 * kRounds / HaltSchedule::kSaturatedShare);
}

TEST(HaltSchedule, GoOnWhereEveryScenarioIsSaturated) {
  HaltSchedule schedule(kScenarios, kModes, 1);
  std::set<ScenarioId> seen;
  for (int i = 0; i < 100; ++i) seen.insert(schedule.next([](ScenarioId) { return true; }).first);
  EXPECT_EQ(seen.size(), kScenarios.size());
}

}  // namespace
}  // namespace framestorm
