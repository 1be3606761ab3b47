#include "harness/guard/signal_table.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace framestorm {
namespace {

std::atomic<int> owner_calls{0};
std::atomic<int> other_calls{0};
uint64_t mask_in_other = 0;

void owner(int signo, siginfo_t* info, void* context) {
  ++owner_calls;
  signals::forward(signo, info, context);
}

void other(int, siginfo_t*, void*) {
  ++other_calls;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask_in_other, sizeof mask_in_other);
}

struct sigaction action_of(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  return action;
}

void own(int signo) {
  sigset_t none;
  sigemptyset(&none);
  signals::own(signo, &owner, SA_RESTART, none);
}

// The kernel's own structure.
struct KernelAction {
  void* handler;
  unsigned long flags;
  void* restorer;
  uint64_t mask;
};
KernelAction in_kernel(int signo) {
  KernelAction action = {};
  syscall(SYS_rt_sigaction, signo, nullptr, &action, sizeof action.mask);
  return action;
}

TEST(SignalTableTest, AnotherActionStandsBehindTheOwners) {
  own(SIGUSR1);
  struct sigaction action = action_of(&other);
  sigaddset(&action.sa_mask, SIGUSR2);
  struct sigaction previous = {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &previous), 0);
  EXPECT_EQ(previous.sa_handler, SIG_DFL);
  EXPECT_EQ(in_kernel(SIGUSR1).handler, reinterpret_cast<void*>(&owner));
  ASSERT_EQ(sigaction(SIGUSR1, nullptr, &previous), 0);
  EXPECT_EQ(previous.sa_sigaction, &other);
  raise(SIGUSR1);
  EXPECT_EQ(owner_calls, 1);
  EXPECT_EQ(other_calls, 1);
  // As the kernel would have called it.
  EXPECT_EQ(mask_in_other, uint64_t{1} << (SIGUSR1 - 1) | uint64_t{1} << (SIGUSR2 - 1));
  uint64_t after = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &after, sizeof after);
  EXPECT_EQ(after, 0U);
}

TEST(SignalTableTest, WhatWasThereBeforeTheOwnerStandsBehindIt) {
  const struct sigaction action = action_of(&other);
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  own(SIGUSR1);
  raise(SIGUSR1);
  EXPECT_EQ(other_calls, 1);
}

TEST(SignalTableTest, SignalIsSigactionWithoutFlags) {
  own(SIGUSR1);
  EXPECT_EQ(signal(SIGUSR1, SIG_IGN), SIG_DFL);
  EXPECT_EQ(signal(SIGUSR1, SIG_DFL), SIG_IGN);
  EXPECT_EQ(signal(NSIG + 1, SIG_DFL), SIG_ERR);
}

TEST(SignalTableTest, ABareSystemCallIsFoundOutAndPutBehind) {
  own(SIGUSR1);
  EXPECT_EQ(signals::reclaim(), 0);
  KernelAction action = in_kernel(SIGUSR1);
  action.handler = reinterpret_cast<void*>(&other);
  ASSERT_EQ(syscall(SYS_rt_sigaction, SIGUSR1, &action, nullptr, sizeof action.mask), 0);
  EXPECT_EQ(signals::reclaim(), 1);
  EXPECT_EQ(in_kernel(SIGUSR1).handler, reinterpret_cast<void*>(&owner));
  raise(SIGUSR1);
  EXPECT_EQ(other_calls, 1);
}

TEST(SignalTableTest, WhoReplacesTheJvmsHandlerOfAFaultGetsAStandInForIt) {
  const struct sigaction jvms = action_of(&owner);
  ASSERT_EQ(sigaction(SIGSEGV, &jvms, nullptr), 0);
  EXPECT_FALSE(signals::is_behind_jvms(SIGSEGV));
  const struct sigaction profilers = action_of(&other);
  struct sigaction previous = {};
  ASSERT_EQ(sigaction(SIGSEGV, &profilers, &previous), 0);
  EXPECT_EQ(previous.sa_sigaction, &signals::stand_for_jvm);
  EXPECT_EQ(previous.sa_flags & SA_ONSTACK, 0);
  EXPECT_EQ(signals::jvms_handler(SIGSEGV), &owner);
  EXPECT_TRUE(signals::is_behind_jvms(SIGSEGV));
  // Put back, it is the JVM's own again.
  ASSERT_EQ(sigaction(SIGSEGV, &previous, nullptr), 0);
  EXPECT_FALSE(signals::is_behind_jvms(SIGSEGV));
  EXPECT_EQ(in_kernel(SIGSEGV).handler, reinterpret_cast<void*>(&owner));
}

TEST(SignalTableTest, HandlersReturnToCodeOfTheCLibrarys) {
  static void* returns_to = nullptr;
  EXPECT_EQ(signals::handlers_return_to(), 0U) << "there is none";
  const struct sigaction action =
      action_of([](int, siginfo_t*, void*) { returns_to = __builtin_return_address(0); });
  ASSERT_EQ(sigaction(SIGSEGV, &action, nullptr), 0);
  raise(SIGSEGV);
  EXPECT_EQ(signals::handlers_return_to(), reinterpret_cast<uintptr_t>(returns_to));
}

TEST(SignalTableTest, AMutedSignalRunsNobodyAndTheFirstIsKept) {
  const struct sigaction action = action_of(&other);
  ASSERT_EQ(sigaction(SIGPROF, &action, nullptr), 0);
  signals::mute(SIGPROF);
  siginfo_t info = {};
  EXPECT_FALSE(signals::first_muted(SIGPROF, &info));
  for (const int mark : {42, 43}) {
    siginfo_t queued = {};
    queued.si_signo = SIGPROF;
    queued.si_code = SI_QUEUE;
    queued.si_value.sival_int = mark;
    ASSERT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGPROF, &queued), 0);
  }
  EXPECT_EQ(other_calls, 0);
  ASSERT_TRUE(signals::first_muted(SIGPROF, &info));
  EXPECT_EQ(info.si_code, SI_QUEUE);
  EXPECT_EQ(info.si_value.sival_int, 42);
  EXPECT_EQ(signals::behind(SIGPROF).sa_sigaction, &other);
}

}  // namespace
}  // namespace framestorm
