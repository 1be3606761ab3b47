// Threads whose timers have expired, on their way from their signal handlers to the sampler. A thread is
// in it once at most, so that it needs no memory but the records', and is never full.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "stress/agent/registry.h"

namespace framestorm::stress {

class TickQueue {
 public:
  // In the thread's signal handler; async-signal-safe. False: it is in it already.
  bool push(SampledThread& thread);

  // The sampler's side; one thread. Who came first; null when nobody came in time. The thread may be
  // pushed again at once.
  SampledThread* pop(std::chrono::nanoseconds patience);

 private:
  // Moves all that were pushed, of which the last is first, to `oldest_`.
  void take_all();

  std::atomic<SampledThread*> newest_{nullptr};
  SampledThread* oldest_ = nullptr;    // the sampler's
  std::atomic<uint32_t> is_empty_{0};  // the sampler sleeps while it is 1
};

}  // namespace framestorm::stress
