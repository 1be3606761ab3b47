#include "stress/agent/tick_queue.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/base/clock.h"

namespace framestorm::stress {

bool TickQueue::push(SampledThread& thread) {
  if (thread.queued.exchange(true, std::memory_order_acq_rel)) return false;
  thread.behind = newest_.load(std::memory_order_relaxed);
  while (!newest_.compare_exchange_weak(thread.behind, &thread)) {
  }
  if (is_empty_.exchange(0) == 1) {
    syscall(SYS_futex, &is_empty_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  return true;
}

void TickQueue::take_all() {
  SampledThread* thread = newest_.exchange(nullptr);
  while (thread != nullptr) {
    SampledThread* const earlier = thread->behind;
    thread->behind = oldest_;
    oldest_ = thread;
    thread = earlier;
  }
}

SampledThread* TickQueue::pop(std::chrono::nanoseconds patience) {
  const uint64_t until = monotonic_ns() + static_cast<uint64_t>(patience.count());
  if (oldest_ == nullptr) take_all();
  while (oldest_ == nullptr) {
    is_empty_.store(1);
    // Who pushes from here on wakes; who has pushed before is seen.
    take_all();
    if (oldest_ != nullptr) break;
    const uint64_t now = monotonic_ns();
    if (now >= until) break;
    // It may also be woken for a thread that it has seen already.
    const timespec at_most = as_timespec(until - now);
    syscall(SYS_futex, &is_empty_, FUTEX_WAIT_PRIVATE, 1, &at_most, nullptr, 0);
    take_all();
  }
  is_empty_.store(0, std::memory_order_relaxed);
  SampledThread* const first = oldest_;
  if (first == nullptr) return nullptr;
  oldest_ = first->behind;
  first->queued.store(false, std::memory_order_release);
  return first;
}

}  // namespace framestorm::stress
