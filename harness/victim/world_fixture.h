// Plain pthreads as victims, for tests of halting without a JVM.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "harness/victim/migrating_loop.h"
#include "harness/victim/world.h"

namespace framestorm::world_test {

// Between two looks at what another thread does.
inline constexpr std::chrono::microseconds kGlance{50};

inline int current_tid() { return static_cast<int>(syscall(SYS_gettid)); }

struct StackRange {
  uintptr_t end = 0;   // lowest address
  uintptr_t base = 0;  // highest address
  bool holds(uintptr_t address) const { return address >= end && address < base; }
};

inline StackRange current_stack() {
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* address = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &address, &size);
  pthread_attr_destroy(&attributes);
  const auto end = reinterpret_cast<uintptr_t>(address);
  return {end, end + size};
}

// What stands for HotSpot's current thread.
inline thread_local void* vm_thread = nullptr;

// A thread that runs `body(stop)` and ends when `stop` is set; its destructor sets and joins.
class TestThread {
 public:
  explicit TestThread(std::function<void(const std::atomic<bool>&)> body)
      : thread_([this, body = std::move(body)] {
          stack_ = current_stack();
          vm_thread = this;
          tid_.store(current_tid(), std::memory_order_release);
          body(stop_);
        }) {
    while (tid_.load(std::memory_order_acquire) == 0) std::this_thread::sleep_for(kGlance);
  }
  ~TestThread() { join(); }
  TestThread(const TestThread&) = delete;
  TestThread& operator=(const TestThread&) = delete;

  int tid() const { return tid_; }
  const StackRange& stack() const { return stack_; }
  void stop() { stop_ = true; }
  void join() {
    stop();
    // A test that failed early has left it halted.
    if (ThreadSlot* slot = World::get().find(tid_)) World::get().release(slot);
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> tid_{0};
  StackRange stack_;
  std::thread thread_;
};

// Counts as fast as it can.
class CountingThread {
 public:
  CountingThread()
      : thread_([this](const std::atomic<bool>& stop) {
          while (!stop.load(std::memory_order_relaxed)) {
            count_.fetch_add(1, std::memory_order_relaxed);
          }
        }) {}
  TestThread* operator->() { return &thread_; }
  uint64_t count() const { return count_.load(); }
  // Returns once it has gone on.
  void await_progress() const {
    const uint64_t now = count();
    while (count() == now) std::this_thread::sleep_for(kGlance);
  }

 private:
  std::atomic<uint64_t> count_{0};
  TestThread thread_;
};

class WorldTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    World::watch_threads();
    World::get().install([] { return vm_thread; }, &MigratingLoop::host_from_signal);
  }
  static World& world() { return World::get(); }
};

}  // namespace framestorm::world_test
