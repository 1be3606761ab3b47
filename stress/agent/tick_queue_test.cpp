#include "stress/agent/tick_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace framestorm::stress {
namespace {

// A wake-up that is lost lets the test run out of its time.
constexpr std::chrono::hours kLong(1);
constexpr std::chrono::milliseconds kShort(1);

TEST(TickQueue, GivesThreadsInTheOrderOfTheirTicks) {
  std::array<SampledThread, 3> threads;
  TickQueue queue;
  EXPECT_EQ(queue.pop(kShort), nullptr);
  for (SampledThread& thread : threads) EXPECT_TRUE(queue.push(thread));
  EXPECT_EQ(queue.pop(kLong), &threads[0]);
  // Behind those that wait.
  EXPECT_TRUE(queue.push(threads[0]));
  EXPECT_EQ(queue.pop(kLong), &threads[1]);
  EXPECT_EQ(queue.pop(kLong), &threads[2]);
  EXPECT_EQ(queue.pop(kLong), &threads[0]);
  EXPECT_EQ(queue.pop(kShort), nullptr);
}

TEST(TickQueue, HasAThreadOnce) {
  SampledThread thread;
  TickQueue queue;
  EXPECT_TRUE(queue.push(thread));
  EXPECT_FALSE(queue.push(thread));
  EXPECT_EQ(queue.pop(kLong), &thread);
  EXPECT_EQ(queue.pop(kShort), nullptr);
}

TEST(TickQueue, LosesNoThreadThatIsPushedMeanwhile) {
  constexpr size_t kThreads = 4;
  constexpr uint64_t kPushes = 20'000;
  std::array<SampledThread, kThreads> threads;
  std::array<std::atomic<uint64_t>, kThreads> pushed = {};
  TickQueue queue;
  std::vector<std::thread> producers;
  producers.reserve(kThreads);
  for (size_t i = 0; i < kThreads; ++i) {
    producers.emplace_back([&, i] {
      while (pushed[i] < kPushes) {
        if (queue.push(threads[i])) {
          ++pushed[i];
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::array<uint64_t, kThreads> popped = {};
  for (uint64_t i = 0; i < kThreads * kPushes; ++i) {
    const SampledThread* const thread = queue.pop(kLong);
    ASSERT_NE(thread, nullptr) << "after " << i;
    ++popped[static_cast<size_t>(thread - threads.data())];
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(std::ranges::all_of(popped, [](uint64_t count) { return count == kPushes; }));
  EXPECT_EQ(queue.pop(kShort), nullptr);
}

}  // namespace
}  // namespace framestorm::stress
