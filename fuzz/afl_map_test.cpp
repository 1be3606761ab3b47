#include "fuzz/afl_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "harness/base/error.h"

// Two edges, where an instrumented library has its counters.
__attribute__((section("__sancov_cntrs"), used)) static uint8_t own_counters[2];

namespace framestorm {
namespace {

TEST(AflMap, HoldsEveryCounterAndFeedbackInItsOwnByte) {
  const std::vector<uint8_t> counters = {3, 0, 255};
  const std::vector<uint8_t> feedback = {0, 128};
  std::vector<uint8_t> map(afl_map_size(counters.size(), feedback.size()), 0);
  ASSERT_EQ(map.size(), 64U);
  map[0] = 1;
  fold(counters, feedback, map);
  EXPECT_EQ(std::vector(map.begin(), map.begin() + 6),
            (std::vector<uint8_t>{1, 3, 0, 255, 0, 128}));
  EXPECT_TRUE(std::all_of(map.begin() + 6, map.end(), [](uint8_t byte) { return byte == 0; }));
}

TEST(AflMap, OneExecutionLeavesNothingOfTheOneBefore) {
  std::vector<uint8_t> map(64, 0);
  fold(std::vector<uint8_t>{1, 1}, std::vector<uint8_t>{1}, map);
  fold(std::vector<uint8_t>{0, 2}, std::vector<uint8_t>{0}, map);
  EXPECT_EQ(std::vector(map.begin() + 1, map.begin() + 4), (std::vector<uint8_t>{0, 2, 0}));
}

TEST(AflMap, HasRoomForAll) {
  EXPECT_EQ(afl_map_size(0, 0), 64U);
  EXPECT_EQ(afl_map_size(60, 3), 64U);
  EXPECT_EQ(afl_map_size(60, 4), 128U);
}

TEST(AflMap, NeverWritesBeyondItsEnd) {
  std::vector<uint8_t> map(8, 7);
  fold(std::vector<uint8_t>(4, 1), std::vector<uint8_t>(4, 2), std::span(map).first(6));
  EXPECT_EQ(map, (std::vector<uint8_t>{7, 1, 1, 1, 1, 2, 7, 7}));
  fold(std::vector<uint8_t>(4, 1), {}, {});
}

TEST(AflMap, CountsTheCountersOfALibrary) {
  own_counters[0] = 1;
  EXPECT_EQ(coverage_counters_in("/proc/self/exe"), sizeof own_counters);
  EXPECT_THROW(coverage_counters_in("/proc/self/status"), SetupError);
  EXPECT_THROW(coverage_counters_in("/nowhere"), SetupError);
}

}  // namespace
}  // namespace framestorm
