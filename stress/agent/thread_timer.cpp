#include "stress/agent/thread_timer.h"

#include <algorithm>
#include <utility>

#include "harness/base/clock.h"
#include "harness/guard/guard.h"
#include "stress/agent/samples_blocked.h"

namespace framestorm::stress {

bool create_timer(SampledThread& thread, clockid_t clock) {
  if (thread.has_timer) return true;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = timer_signal();
  event.sigev_value.sival_ptr = &thread;
  event._sigev_un._tid = thread.tid.load(std::memory_order_relaxed);
  thread.has_timer = timer_create(clock, &event, &thread.timer) == 0;
  return thread.has_timer;
}

void start_timer(const SampledThread& thread, uint64_t first_ns, uint64_t interval_ns) {
  const itimerspec when = {as_timespec(interval_ns), as_timespec(first_ns)};
  timer_settime(thread.timer, 0, &when, nullptr);
}

void stop_timer(const SampledThread& thread) {
  const itimerspec never = {};
  if (thread.has_timer) timer_settime(thread.timer, 0, &never, nullptr);
}

void delete_timer(SampledThread& thread) {
  if (std::exchange(thread.has_timer, false)) timer_delete(thread.timer);
}

SampledThread* thread_of(const siginfo_t& info) {
  // Anybody may send a signal; only a timer's has the address of a record.
  return info.si_code == SI_TIMER ? static_cast<SampledThread*>(info.si_value.sival_ptr) : nullptr;
}

void count_ticks(SampledThread& thread, const siginfo_t& info, uint64_t interval_ns) {
  const auto overrun = static_cast<uint64_t>(std::max(info.si_overrun, 0));
  thread.ticks.fetch_add(1 + overrun, std::memory_order_relaxed);
  const uint64_t forwarded = Guard::forwarded_ns();
  const uint64_t since = forwarded - thread.forwarded_seen;
  thread.forwarded_seen = forwarded;
  const uint64_t blocked = std::min(overrun, since / interval_ns);
  if (blocked > 0) thread.lose(LostCause::signals_blocked, blocked);
  if (overrun > blocked) thread.lose(LostCause::timer_overrun, overrun - blocked);
}

}  // namespace framestorm::stress
