#include "harness/guard/watchdog.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/guard/interposer.h"
#include "harness/guard/thread_table.h"

namespace framestorm::watchdog {

namespace {

constexpr uint64_t kPollInterval = 20'000'000;
// After this long a walk that cannot be interrupted takes the process with it.
constexpr uint64_t kInterruptPatience = 10 * kSecond;

constinit ThreadTable<kMaxWalkers> walkers;
// Those of `walkers`, then those that are lent.
constexpr size_t kSlots = kMaxWalkers + kMaxWatches;
constinit std::array<WatchSlot, kSlots> slots;
constinit std::atomic<size_t> reserved_slots{0};
constinit std::atomic<int> watchdog_tid{0};
constinit GuardLimits limits_in_use;

[[noreturn]] void die(const char* message) {
  // Best effort: the process ends either way.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  std::abort();
}

// Waiting for a CPU is not being blocked. proc(5): the state follows the ')' of the name.
bool is_runnable(int tid) {
  std::array<char, 64> path{};
  constexpr char kPrefix[] = "/proc/self/task/";
  char* end = std::copy_n(kPrefix, sizeof(kPrefix) - 1, path.data());
  end = std::to_chars(end, path.data() + path.size() - 8, tid).ptr;
  std::copy_n("/stat", 6, end);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  std::array<char, 256> text{};
  const ssize_t size = read(fd, text.data(), text.size() - 1);
  close(fd);
  const char* name_end = size > 0 ? std::strrchr(text.data(), ')') : nullptr;
  return name_end != nullptr && std::strlen(name_end) > 2 && name_end[2] == 'R';
}

int tid_of(size_t index) {
  return index < kMaxWalkers ? walkers.tid_at(index)
                             : slots[index].lent_to.load(std::memory_order_acquire);
}

// What the watchdog remembers about one slot.
struct Observation {
  uint64_t sequence = 0;
  uint64_t cpu_at_start = 0;
  uint64_t wall = 0;  // since it was first seen, of the time in which the watchdog itself ran
  uint64_t interrupted = 0;  // the same, since its first interruption
};

void observe(size_t index, uint64_t elapsed, Observation* seen) {
  WatchSlot& slot = slots[index];
  const uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
  const bool walking = sequence % 2 != 0;
  if (!walking || sequence != seen->sequence) {
    *seen = {};
    seen->sequence = sequence;
    if (walking) {
      seen->cpu_at_start = thread_cpu_ns(tid_of(index));
    }
    return;
  }
  const int tid = tid_of(index);
  seen->wall += elapsed;
  const uint64_t cpu = thread_cpu_ns(tid) - seen->cpu_at_start;
  const bool hung = seen->interrupted != 0 || cpu > limits_in_use.cpu_ns ||
                    (seen->wall > limits_in_use.wall_ns && !is_runnable(tid));
  if (!hung) {
    return;
  }
  seen->interrupted += elapsed;
  if (seen->interrupted > kInterruptPatience) {
    die("framestorm: guard: a hung walk cannot be interrupted: its thread blocks the watchdog's "
        "signal\n");
  }
  // The handler compares: by now the thread may be in its next walk. Failing (the thread is gone,
  // the signal queue is full) is met again at the next poll.
  slot.interrupt.store(sequence, std::memory_order_release);
  syscall(SYS_tgkill, getpid(), tid, signal_number());
}

void* watch(void*) {
  pthread_setname_np(pthread_self(), "fs-watchdog");
  watchdog_tid.store(gettid(), std::memory_order_release);
  watchdog_tid.notify_all();
  std::array<Observation, kSlots> seen{};
  uint64_t last = monotonic_ns();
  for (;;) {
    const timespec pause{0, static_cast<long>(kPollInterval)};
    nanosleep(&pause, nullptr);
    const uint64_t now = monotonic_ns();
    // A process that was stopped (debugger, AFL++) did not let anybody run in that time.
    const uint64_t elapsed = std::min(now - last, 2 * kPollInterval);
    last = now;
    const size_t count = kMaxWalkers + std::min(reserved_slots.load(), kMaxWatches);
    for (size_t i = 0; i < count; ++i) {
      observe(i, elapsed, &seen[i]);
    }
  }
}

}  // namespace

int signal_number() { return SIGRTMAX - 5; }

int start(const GuardLimits& limits) {
  limits_in_use = limits;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = create_unhooked_thread(&thread, watch);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "starting the guard's watchdog thread");
  }
  pthread_detach(thread);
  watchdog_tid.wait(0, std::memory_order_acquire);
  return watchdog_tid.load(std::memory_order_acquire);
}

WatchSlot* claim_slot() {
  const size_t index = walkers.claim(gettid());
  if (index == ThreadTable<kMaxWalkers>::kNone) {
    die("framestorm: guard: more threads walk at once than the watchdog can watch\n");
  }
  // A thread that died in a walk left an odd number.
  std::atomic<uint64_t>& sequence = slots[index].sequence;
  sequence.store((sequence.load(std::memory_order_relaxed) + 1) & ~uint64_t{1},
                 std::memory_order_relaxed);
  return &slots[index];
}

WatchSlot* reserve_slot() {
  const size_t index = reserved_slots.fetch_add(1);
  return index < kMaxWatches ? &slots[kMaxWalkers + index] : nullptr;
}

void lend_slot(WatchSlot* slot, int tid) { slot->lent_to.store(tid, std::memory_order_release); }

}  // namespace framestorm::watchdog
