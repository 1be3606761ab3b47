#include "stress/agent/registry.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "stress/agent/histogram.h"
#include "stress/agent/sample_ring.h"

namespace framestorm::stress {
namespace {

int own_tid() { return static_cast<int>(syscall(SYS_gettid)); }

void nothing_to_retire(SampledThread&) { ADD_FAILURE() << "its thread has left"; }

SampledThread* enter(Registry& registry, int tid, void* java_thread = nullptr) {
  return registry.enter(tid, nullptr, java_thread, nullptr, 0, 0, 0, nullptr, nothing_to_retire);
}

TEST(Registry, CountsOfThreadsThatAreGoneStayInTheTotals) {
  Registry registry;
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      SampledThread* const thread = enter(registry, own_tid());
      ASSERT_NE(thread, nullptr);
      EXPECT_EQ(enter(registry, own_tid()), nullptr) << "known";
      thread->ticks += 10;
      thread->samples += 7;
      thread->lose(LostCause::timer_overrun, 3);
      registry.leave(own_tid(), [](SampledThread& leaving) { leaving.cpu_ns += 5; });
    }).join();
    registry.reap();
  }
  const Registry::Totals totals = registry.totals();
  EXPECT_EQ(totals.ticks, 500U);
  EXPECT_EQ(totals.samples, 350U);
  EXPECT_EQ(totals.cpu_ns, 250U);
  EXPECT_EQ(totals.lost[static_cast<size_t>(LostCause::timer_overrun)], 150U);
  EXPECT_EQ(totals.seen, 50U);
  EXPECT_EQ(totals.live, 0U);
  EXPECT_EQ(totals.peak, 1U);
}

TEST(Registry, CountsThatComeWhenTheirThreadIsGoneAreInTheTotals) {
  Registry registry;
  SampledThread* sampled = nullptr;
  std::thread([&] {
    sampled = enter(registry, own_tid());
    sampled->ticks.fetch_add(1);
    registry.leave(own_tid(), [](SampledThread&) {});
  }).join();
  registry.reap();
  ASSERT_EQ(sampled->phase, SampledThread::Phase::free);
  sampled->lose(LostCause::thread_exiting);
  const Registry::Totals totals = registry.totals();
  EXPECT_EQ(totals.ticks, 1U);
  EXPECT_EQ(totals.lost[static_cast<size_t>(LostCause::thread_exiting)], 1U);
}

TEST(Registry, RecordOfAThreadThatStillRunsIsNotUsedAgain) {
  Registry registry;
  SampledThread* const thread = enter(registry, own_tid());
  registry.leave(own_tid(), [](SampledThread&) {});
  EXPECT_EQ(thread->phase, SampledThread::Phase::ending);
  registry.reap();
  EXPECT_EQ(thread->phase, SampledThread::Phase::ending) << "a signal may still come";
  std::thread([&] { EXPECT_NE(enter(registry, own_tid()), thread); }).join();
}

TEST(Registry, ThreadThatIsAttachedAgainAndAgainUsesUpOneRecord) {
  Registry registry;
  SampledThread* const first = enter(registry, own_tid());
  for (size_t i = 0; i <= Registry::kMaxThreads; ++i) {
    first->ticks.fetch_add(2);
    first->lose(LostCause::thread_exiting);
    registry.leave(own_tid(), [](SampledThread& leaving) { leaving.cpu_ns += 3; });
    ASSERT_EQ(enter(registry, own_tid()), first);
    ASSERT_EQ(first->phase, SampledThread::Phase::live);
  }
  registry.reap();
  const Registry::Totals totals = registry.totals();
  EXPECT_EQ(totals.ticks, 2 * (Registry::kMaxThreads + 1));
  EXPECT_EQ(totals.lost[static_cast<size_t>(LostCause::thread_exiting)], Registry::kMaxThreads + 1);
  EXPECT_EQ(totals.cpu_ns, 3 * (Registry::kMaxThreads + 1));
  EXPECT_EQ(totals.seen, Registry::kMaxThreads + 2);
  EXPECT_EQ(totals.live, 1U);
  EXPECT_EQ(totals.peak, 1U);
}

TEST(Registry, ThreadWhoseEndWasMissedMakesWayForTheNextOfItsId) {
  Registry registry;
  int former = 0;
  int next = 0;
  SampledThread* const thread = enter(registry, own_tid(), &former);
  thread->ticks = 4;
  int retired = 0;
  SampledThread* const again = registry.enter(
      own_tid(), nullptr, &next, nullptr, 20, 10, 0, nullptr, [&](SampledThread& leaving) {
        ++retired;
        EXPECT_EQ(leaving.java_thread, &former);
        EXPECT_EQ(leaving.phase, SampledThread::Phase::ending) << "no more samples";
      });
  EXPECT_EQ(retired, 1);
  EXPECT_EQ(again, thread) << "a signal may still come";
  EXPECT_EQ(again->phase, SampledThread::Phase::live);
  EXPECT_EQ(again->java_thread, &next);
  EXPECT_EQ(again->stack_base, 20U);
  EXPECT_EQ(enter(registry, own_tid(), &next), nullptr) << "known";
  const Registry::Totals totals = registry.totals();
  EXPECT_EQ(totals.ticks, 4U);
  EXPECT_EQ(totals.seen, 2U);
  EXPECT_EQ(totals.live, 1U);
}

TEST(Registry, OnlyTheThreadItselfReplacesWhatIsKnownOfIt) {
  Registry registry;
  const int tid = own_tid();
  int own = 0;
  int listed = 0;
  SampledThread* const thread = enter(registry, tid, &own);
  std::thread([&] { EXPECT_EQ(enter(registry, tid, &listed), nullptr); }).join();
  EXPECT_EQ(thread->java_thread, &own);
  registry.leave(tid, [](SampledThread&) {});
  std::thread([&] { EXPECT_EQ(enter(registry, tid, &listed), nullptr); }).join();
  EXPECT_EQ(thread->phase, SampledThread::Phase::ending);
}

TEST(SampleRing, ManyProducersLoseNothingSilently) {
  constexpr uint64_t kEach = 20'000;
  SampleRing ring(64, 256);
  std::atomic<uint64_t> full{0};
  std::vector<std::thread> producers;
  producers.reserve(3);
  for (uint64_t p = 0; p < 3; ++p) {
    producers.emplace_back([&, p] {
      for (uint64_t i = 0; i < kEach; ++i) {
        Sample sample;
        sample.number = p * kEach + i;
        sample.frame_bytes = sizeof sample.number;
        if (!ring.push(sample, reinterpret_cast<const std::byte*>(&sample.number), nullptr,
                       nullptr))
          ++full;
      }
    });
  }
  uint64_t taken = 0;
  std::vector<int64_t> last(3, -1);
  while (taken + full < 3 * kEach) {
    SampleRing::Entry entry = {};
    if (!ring.front(&entry)) continue;
    uint64_t payload = 0;
    std::copy_n(entry.frames, sizeof payload, reinterpret_cast<std::byte*>(&payload));
    ASSERT_EQ(payload, entry.sample->number);
    const auto producer = static_cast<size_t>(payload / kEach);
    ASSERT_LT(last[producer], static_cast<int64_t>(payload)) << "twice or out of order";
    last[producer] = static_cast<int64_t>(payload);
    ring.pop();
    ++taken;
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_GT(taken, 0U);
}

TEST(Histogram, SharesAreWithinTwoPercent) {
  Histogram histogram;
  EXPECT_EQ(histogram.at(0.5), 0U);
  for (uint64_t i = 1; i <= 100'000; ++i) histogram.add(i * 10);
  EXPECT_NEAR(static_cast<double>(histogram.at(0.5)), 500'000, 10'000);
  EXPECT_NEAR(static_cast<double>(histogram.at(0.99)), 990'000, 20'000);
  EXPECT_EQ(histogram.max(), 1'000'000U);
  EXPECT_EQ(histogram.at(1), 1'000'000U);
  histogram.add(UINT64_MAX);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
}

}  // namespace
}  // namespace framestorm::stress
