// Clocks, in nanoseconds. Async-signal-safe.
#pragma once

#include <time.h>

#include <cstdint>

namespace framestorm::stress {

inline constexpr uint64_t kSecond = 1'000'000'000;

inline uint64_t read_clock(clockid_t clock) {
  timespec now = {};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }

// CPU time of a thread; 0 of one that is gone. As in the guard's watchdog: pthread_getcpuclockid
// needs a pthread_t.
inline uint64_t thread_cpu_ns(int tid) {
  return read_clock(static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6U));
}

inline timespec as_timespec(uint64_t ns) {
  return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

}  // namespace framestorm::stress
