// Clocks, in nanoseconds. Async-signal-safe.
#pragma once

#include <time.h>

#include <cstdint>

namespace framestorm {

inline constexpr uint64_t kSecond = 1'000'000'000;

// 0 where there is no such clock (any more).
inline uint64_t read_clock(clockid_t clock) {
  timespec now = {};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }

// CPU time of the calling thread.
inline uint64_t own_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

// The clock of a thread's CPU time. pthread_getcpuclockid needs a pthread_t; the number as in Linux,
// include/linux/posix-timers.h: ~tid << 3 | CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED.
inline clockid_t cpu_clock(int tid) {
  return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6U);
}

// CPU time of a thread; 0 of one that is gone.
inline uint64_t thread_cpu_ns(int tid) { return read_clock(cpu_clock(tid)); }

inline timespec as_timespec(uint64_t ns) {
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

}  // namespace framestorm
