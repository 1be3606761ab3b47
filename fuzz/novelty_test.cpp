#include "fuzz/novelty.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace framestorm {
namespace {

// Not a whole number of blocks, as real counters are.
constexpr size_t kEdges = 1003;

std::vector<uint8_t> counters_with(std::initializer_list<std::pair<size_t, uint8_t>> counts) {
  std::vector<uint8_t> counters(kEdges);
  for (const auto& [edge, count] : counts) counters[edge] = count;
  return counters;
}

bool take(Novelty& novelty, std::initializer_list<std::pair<size_t, uint8_t>> counts) {
  std::vector<uint8_t> counters = counters_with(counts);
  const bool is_new = novelty.take(counters);
  EXPECT_TRUE(std::ranges::all_of(counters, [](uint8_t count) { return count == 0; }));
  return is_new;
}

TEST(NoveltyTest, AnEdgeIsNewOnce) {
  Novelty novelty;
  EXPECT_FALSE(take(novelty, {}));
  for (const size_t edge : {size_t{0}, size_t{127}, size_t{128}, size_t{500}, kEdges - 1}) {
    EXPECT_TRUE(take(novelty, {{edge, 1}})) << edge;
    EXPECT_FALSE(take(novelty, {{edge, 1}})) << edge;
  }
}

TEST(NoveltyTest, OneNewEdgeAmongKnownOnesIsSeen) {
  Novelty novelty;
  take(novelty, {{3, 1}, {700, 9}});
  EXPECT_TRUE(take(novelty, {{3, 1}, {4, 1}, {700, 9}}));
  EXPECT_FALSE(take(novelty, {{3, 1}, {4, 1}, {700, 9}}));
}

TEST(NoveltyTest, CountsAreNewByTheClassesOfLibFuzzer) {
  Novelty novelty;
  uint8_t last = 0;
  for (const unsigned first : {1U, 2U, 3U, 4U, 8U, 16U, 32U, 128U}) {
    const auto lowest = static_cast<uint8_t>(first);
    EXPECT_TRUE(take(novelty, {{42, lowest}})) << first;
    if (last != 0) EXPECT_FALSE(take(novelty, {{42, static_cast<uint8_t>(lowest - 1)}}));
    last = lowest;
  }
  EXPECT_FALSE(take(novelty, {{42, 255}}));
}

TEST(NoveltyTest, WhatTheEngineWasToldIsNotNew) {
  Novelty novelty;
  const std::vector<uint8_t> counters = counters_with({{7, 3}, {1000, 1}});
  novelty.told(counters);
  EXPECT_EQ(counters, counters_with({{7, 3}, {1000, 1}}));
  EXPECT_FALSE(take(novelty, {{7, 3}}));
  EXPECT_TRUE(take(novelty, {{7, 2}}));
}

TEST(NoveltyTest, WhatTheEngineWasNeverToldIsNewAgain) {
  Novelty novelty;
  novelty.told(counters_with({{7, 1}}));
  EXPECT_TRUE(take(novelty, {{8, 1}}));
  novelty.forget();
  EXPECT_TRUE(take(novelty, {{8, 1}}));
  EXPECT_FALSE(take(novelty, {{7, 1}}));
}

}  // namespace
}  // namespace framestorm
