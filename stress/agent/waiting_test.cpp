#include "stress/agent/waiting.h"

#include <gtest/gtest.h>

namespace framestorm::stress {
namespace {

TEST(Waiting, TheLongerTheWaitTheLongerTheRest) {
  Waiting waiting;
  EXPECT_EQ(waiting.note(true, 1000), 0U) << "it may have just begun";
  EXPECT_EQ(waiting.note(true, 1000 + 160), 10U);
  EXPECT_EQ(waiting.note(true, 1000 + 1600), 100U);
  EXPECT_EQ(waiting.total(), 1600U);
}

TEST(Waiting, RunningBeginsAnew) {
  Waiting waiting;
  waiting.note(true, 1000);
  waiting.note(true, 2600);
  EXPECT_EQ(waiting.note(false, 3000), 0U);
  EXPECT_EQ(waiting.note(true, 4000), 0U);
  EXPECT_EQ(waiting.note(true, 4016), 1U);
  EXPECT_EQ(waiting.total(), 1616U)
      << "not what lies between a sample that waits and one that runs";
}

TEST(Waiting, WhatWasBeforeAPauseIsForgotten) {
  Waiting waiting;
  waiting.note(true, 1000);
  waiting.note(true, 2600);
  waiting.forget();
  EXPECT_EQ(waiting.total(), 0U);
  EXPECT_EQ(waiting.note(true, 1'000'000'000), 0U);
  EXPECT_EQ(waiting.note(true, 1'000'000'016), 1U);
}

}  // namespace
}  // namespace framestorm::stress
