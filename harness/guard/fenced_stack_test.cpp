#include "harness/guard/fenced_stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <set>

namespace framestorm {
namespace {

struct Seen {
  std::atomic<int> tid{0};
  void* stack = nullptr;
  size_t size = 0;
};

void* look(void* arg) {
  auto* seen = static_cast<Seen*>(arg);
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &seen->stack, &seen->size);
  pthread_attr_destroy(&attributes);
  seen->tid.store(static_cast<int>(syscall(SYS_gettid)));
  return nullptr;
}

bool gone(int tid) { return syscall(SYS_tgkill, getpid(), tid, 0) != 0; }

void run_detached(Seen* seen) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, &look, seen), 0);
  pthread_attr_destroy(&attributes);
  while (seen->tid.load() == 0 || !gone(seen->tid.load())) sched_yield();
}

bool readable(const void* address) {
  // A write to a pipe reads the byte without faulting.
  int fds[2];
  if (pipe(fds) != 0) return false;
  const bool ok = write(fds[1], address, 1) == 1;
  close(fds[0]);
  close(fds[1]);
  return ok;
}

TEST(FencedStackTest, ByteAboveTheBaseOfADetachedThreadsStackIsUnreadable) {
  Seen seen;
  run_detached(&seen);
  char* const base = static_cast<char*>(seen.stack) + seen.size;
  EXPECT_TRUE(readable(base - 1));
  EXPECT_FALSE(readable(base));
  EXPECT_FALSE(readable(static_cast<char*>(seen.stack) - 1));
}

TEST(FencedStackTest, StacksOfThreadsThatAreGoneAreUsedAgain) {
  std::set<void*> stacks;
  for (int i = 0; i < 100; ++i) {
    Seen seen;
    run_detached(&seen);
    stacks.insert(seen.stack);
  }
  EXPECT_LE(stacks.size(), 3U);
}

TEST(FencedStackTest, JoinableThreadsAndThoseWithAStackOfTheirOwnAreLeftAlone) {
  pthread_attr_t attributes;
  pthread_attr_t out;
  pthread_attr_init(&attributes);
  EXPECT_EQ(fence_stack(nullptr, &out), nullptr);
  EXPECT_EQ(fence_stack(&attributes, &out), nullptr);
  alignas(4096) static char own[128 << 10];
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstack(&attributes, own, sizeof own);
  EXPECT_EQ(fence_stack(&attributes, &out), nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace framestorm
