// A timer of a sampled thread's own, which signals that thread at every interval.
#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>

#include "stress/agent/registry.h"

namespace framestorm::stress {

// With the registry's lock. False when the system has none left. It does not run yet.
bool create_timer(SampledThread& thread, clockid_t clock);
// Of its clock's time: until it expires first, and from then on. Async-signal-safe; on the thread itself,
// or with the registry's lock.
void start_timer(const SampledThread& thread, uint64_t first_ns, uint64_t interval_ns);
// Nothing where there is no timer. As start_timer.
void stop_timer(const SampledThread& thread);
// The same, with the registry's lock.
void delete_timer(SampledThread& thread);

// The record that a timer's signal is for; null: somebody else sent it. In its handler.
SampledThread* thread_of(const siginfo_t& info);
// Counts the expiration that is being handled, and those that were merged into it. In its handler.
void count_ticks(SampledThread& thread, const siginfo_t& info, uint64_t interval_ns);

}  // namespace framestorm::stress
