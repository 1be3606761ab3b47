#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "harness/guard/guard_fixture.h"
#include "harness/guard/watchdog.h"

namespace framestorm {
namespace {

using guard_test::stack_of;
using guard_test::Walk;
using guard_test::walk;
using ::testing::Contains;
using ::testing::KilledBySignal;

class InstalledGuard : public ::testing::Environment {
 public:
  void SetUp() override {
    Guard::install({.claim = guard_test::dispatch_claim}, guard_test::kTestLimits);
  }
};
[[maybe_unused]] const auto* const installed_guard =
    ::testing::AddGlobalTestEnvironment(new InstalledGuard);  // owned by GoogleTest

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<uint32_t> futex_word{0};
volatile uint64_t turns;

FRAMESTORM_TEST_FRAME void spin_inner() {
  for (;;) {
    turns = turns + 1;
  }
}
FRAMESTORM_TEST_FRAME void spin_outer() { spin_inner(); }
FRAMESTORM_TEST_FRAME void futex_inner() {
  syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}
FRAMESTORM_TEST_FRAME void futex_outer() { futex_inner(); }
FRAMESTORM_TEST_FRAME void lock_inner() { pthread_mutex_lock(&mutex); }
FRAMESTORM_TEST_FRAME void lock_outer() { lock_inner(); }

void expect_usable() {
  EXPECT_EQ(walk([] {}).end, WalkEnd::returned);
  EXPECT_EQ(walk([] { __builtin_trap(); }).end, WalkEnd::fault);
}

TEST(WatchdogTest, SpinningWalkIsInterruptedWhereItIsStuck) {
  for (int i = 0; i < 2; ++i) {
    const Walk result = walk(spin_outer);
    ASSERT_EQ(result.end, WalkEnd::hang);
    EXPECT_EQ(result.fault.end, WalkEnd::hang);
    EXPECT_EQ(result.fault.signo, 0);
    EXPECT_THAT(stack_of(result.fault), ::testing::ElementsAre("spin_inner", "spin_outer",
                                                               ::testing::HasSubstr("run_plain")));
    EXPECT_EQ(result.fault.code_size, kCodeBytes);
    EXPECT_EQ(result.fault.locks_held, 0U);
    expect_usable();
  }
}

TEST(WatchdogTest, WalkBlockedInTheKernelIsInterrupted) {
  const Walk result = walk(futex_outer);
  ASSERT_EQ(result.end, WalkEnd::hang);
  // syscall() has no frame of its own, which hides its caller from frame pointers.
  EXPECT_THAT(stack_of(result.fault), Contains("futex_outer"));
  expect_usable();
}

TEST(WatchdogTest, WalkBlockedOnALockIsInterruptedWithItsCallers) {
  pthread_mutex_lock(&mutex);
  const Walk result = walk(lock_outer);
  pthread_mutex_unlock(&mutex);
  ASSERT_EQ(result.end, WalkEnd::hang);
  const std::vector<std::string> names = stack_of(result.fault);
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ(names[1], "lock_inner");
  EXPECT_EQ(names[2], "lock_outer");
  EXPECT_EQ(result.fault.locks_held, 0U);
  ASSERT_EQ(result.unsafe.count, 1U);
  EXPECT_STREQ(result.unsafe.calls[0].function, "pthread_mutex_lock");
  expect_usable();
}

TEST(WatchdogTest, LockHeldByAHungWalkIsReported) {
  const Walk result = walk([] {
    pthread_mutex_lock(&mutex);
    spin_inner();
  });
  EXPECT_EQ(result.end, WalkEnd::hang);
  EXPECT_EQ(result.fault.locks_held, 1U);
  pthread_mutex_unlock(&mutex);
}

Walk walk_in_handler;

TEST(WatchdogTest, HangInTheWalkOfASignalHandlerIsInterrupted) {
  struct sigaction action{};
  action.sa_handler = [](int) { walk_in_handler = walk(spin_outer); };
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  EXPECT_EQ(walk_in_handler.end, WalkEnd::hang);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0);
  EXPECT_EQ(sigismember(&mask, Guard::watchdog_signal()), 0);
}

TEST(WatchdogTest, HangWhileHotSpotIsAskedIsInterrupted) {
  guard_test::current_claim = [](int, siginfo_t*, void*) {
    spin_inner();
    return false;
  };
  const Walk result = walk([] { __builtin_trap(); });
  guard_test::current_claim = nullptr;
  ASSERT_EQ(result.end, WalkEnd::hang);
  EXPECT_EQ(stack_of(result.fault).front(), "spin_inner");
  expect_usable();
}

TEST(WatchdogTest, ManyShortWalksAreNoHang) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::nanoseconds(3 * guard_test::kTestLimits.cpu_ns);
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_EQ(walk([] { turns = turns + 1; }).end, WalkEnd::returned);
  }
}

TEST(WatchdogTest, BlockedBelowTheLimitIsNoHang) {
  const Walk result = walk([] {
    const timespec pause{0, static_cast<long>(guard_test::kTestLimits.cpu_ns * 3 / 2)};
    nanosleep(&pause, nullptr);
  });
  EXPECT_EQ(result.end, WalkEnd::returned) << "sleeping burns no CPU time";
}

TEST(WatchdogTest, SeveralThreadsHangAtOnce) {
  std::atomic<int> hangs{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { hangs += walk(spin_outer).end == WalkEnd::hang ? 1 : 0; });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(hangs, 4);
}

TEST(WatchdogTest, SlotsOfDeadThreadsAreReusedAndStillWatched) {
  for (size_t i = 0; i < 3 * watchdog::kMaxWalkers; ++i) {
    std::thread([] { walk([] {}); }).join();
  }
  WalkEnd end = WalkEnd::returned;
  std::thread([&] { end = walk(spin_outer).end; }).join();
  EXPECT_EQ(end, WalkEnd::hang);
}

TEST(WatchdogTest, OwnThreadsAreKnown) {
  const std::span<const int> threads = Guard::own_threads();
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_NE(threads[0], static_cast<int>(syscall(SYS_gettid)));
  EXPECT_EQ(syscall(SYS_tgkill, getpid(), threads[0], 0), 0);
}

TEST(WatchdogTest, HangThatCannotBeInterruptedEndsTheProcessWithAMessage) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, Guard::watchdog_signal());
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
        walk(spin_outer);
      },
      KilledBySignal(SIGABRT), "cannot be interrupted");
}

}  // namespace
}  // namespace framestorm
