#include "stress/agent/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace framestorm::stress {
namespace {

constexpr uint64_t kMicrosecond = 1000;

// Samples that take `walk` each, the next as soon as it is due and the thread may be sampled, for a
// second; what of it the thread had without them, less what signals cost it.
double own_share(uint64_t interval, uint64_t walk, uint64_t delivery) {
  Progress progress;
  constexpr uint64_t kEnd = 1'000'000 * kMicrosecond;
  uint64_t own = 0;
  uint64_t now = interval;
  uint64_t last_end = 0;
  while (now < kEnd) {
    const uint64_t gap = now - last_end;
    const uint64_t around = delivery + Progress::kRefill;
    own += gap > around ? gap - around : 0;
    last_end = now + walk;
    const uint64_t left_alone = progress.note(now, last_end, interval, delivery);
    now = std::max(now + std::max(interval, walk + delivery), last_end + left_alone);
  }
  return static_cast<double>(own) / kEnd;
}

TEST(Progress, SignalsWithoutPauseLeaveATenth) {
  for (const auto& [interval, walk, delivery] :
       {std::array<uint64_t, 3>{1, 2, 25}, {10, 20, 25}, {10, 300, 2}}) {
    const double share =
        own_share(interval * kMicrosecond, walk * kMicrosecond, delivery * kMicrosecond);
    EXPECT_GT(share, 0.095) << interval << " us";
    EXPECT_LT(share, 0.15) << interval << " us";
  }
}

TEST(Progress, AThreadThatHasItsTenthIsNotPutOff) {
  Progress progress;
  uint64_t now = 0;
  for (int i = 0; i < 10000; ++i) {
    now += 100 * kMicrosecond;
    ASSERT_EQ(progress.note(now, now + 20 * kMicrosecond, 100 * kMicrosecond, 25 * kMicrosecond),
              0U);
  }
}

TEST(Progress, WhatIsLeftIsLeftAtOnce) {
  Progress progress;
  uint64_t now = 0;
  int put_off = 0;
  for (int i = 0; i < 100; ++i) {
    now += 30 * kMicrosecond;
    const uint64_t left_alone =
        progress.note(now, now + 3 * kMicrosecond, 10 * kMicrosecond, 25 * kMicrosecond);
    if (left_alone == 0) continue;
    ++put_off;
    EXPECT_GT(left_alone, 100 * kMicrosecond);
  }
  EXPECT_GT(put_off, 0);
}

}  // namespace
}  // namespace framestorm::stress
