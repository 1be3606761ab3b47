// Same-thread: a timer of each thread's own signals it, and it walks itself in the handler.
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/base/clock.h"
#include "harness/victim/context.h"
#include "stress/agent/sampler.h"

namespace framestorm::stress {
namespace {

// HotSpot's guard pages and room for a handler and a walk above them.
constexpr uintptr_t kStackReserve = uintptr_t{48} << 10;

class SameThreadSampler final : public Sampler {
 public:
  SameThreadSampler(const Options& options, Jvm& jvm, WalkSetup setup);

 private:
  bool prepare(SampledThread& thread) override;
  void begin(SampledThread& thread, uint64_t first_ns) override;
  void end(SampledThread& thread) override;
  void forget(SampledThread& thread) override;

  static void handle(int signo, siginfo_t* info, void* context);
  void tick(SampledThread& thread, const ucontext_t& context);
  void sample_here(SampledThread& thread, const ucontext_t& context, bool waiting);
  // Counts a timer's expirations: the one being handled, and those that were merged into it. On the
  // thread itself.
  void count_ticks(SampledThread& thread, uint64_t overrun) const;
  void put_off(SampledThread& thread, const Rest& rest);
  // A thread that waits does nothing but take signals. `entered_cpu` is its processor time when the
  // handler that found it so began.
  void note_idle_time(SampledThread& thread, uint64_t entered_cpu);
};

SameThreadSampler* active = nullptr;

SameThreadSampler::SameThreadSampler(const Options& options, Jvm& jvm, WalkSetup setup)
    : Sampler(options, jvm, std::move(setup)) {
  active = this;
  install_handler(timer_signal(), &SameThreadSampler::handle);
}

bool SameThreadSampler::prepare(SampledThread& thread) {
  if (thread.has_timer) return true;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = timer_signal();
  event.sigev_value.sival_ptr = &thread;
  event._sigev_un._tid = thread.tid.load(std::memory_order_relaxed);
  thread.has_timer = timer_create(CLOCK_MONOTONIC, &event, &thread.timer) == 0;
  return thread.has_timer;
}

void SameThreadSampler::begin(SampledThread& thread, uint64_t first_ns) {
  const itimerspec when = {as_timespec(interval_ns()), as_timespec(first_ns)};
  timer_settime(thread.timer, 0, &when, nullptr);
}

void SameThreadSampler::end(SampledThread& thread) {
  const itimerspec never = {};
  if (thread.has_timer) timer_settime(thread.timer, 0, &never, nullptr);
}

void SameThreadSampler::forget(SampledThread& thread) {
  if (std::exchange(thread.has_timer, false)) timer_delete(thread.timer);
}

void SameThreadSampler::handle(int, siginfo_t* info, void* context) {
  const Handling handling(*active);
  // Anybody may send a signal; only a timer's has the address of a record.
  if (info->si_code != SI_TIMER || active->stopped()) return;
  auto& thread = *static_cast<SampledThread*>(info->si_value.sival_ptr);
  active->count_ticks(thread, static_cast<uint64_t>(std::max(info->si_overrun, 0)));
  active->tick(thread, *static_cast<const ucontext_t*>(context));
}

void SameThreadSampler::tick(SampledThread& thread, const ucontext_t& context) {
  const uint64_t entered = monotonic_ns();
  const InterruptedCall call = interrupted_call(context);
  const uint64_t entered_cpu = call.waiting ? own_cpu_ns() : 0;
  sample_here(thread, context, call.waiting);
  put_off(thread, rest_after(thread, call, entered));
  if (call.waiting) {
    note_idle_time(thread, entered_cpu);
  } else {
    thread.waiting_cpu = 0;
  }
}

void SameThreadSampler::count_ticks(SampledThread& thread, uint64_t overrun) const {
  thread.ticks.fetch_add(1 + overrun, std::memory_order_relaxed);
  const uint64_t forwarded = Guard::forwarded_ns();
  const uint64_t since = forwarded - thread.forwarded_seen;
  thread.forwarded_seen = forwarded;
  const uint64_t blocked = std::min(overrun, since / interval_ns());
  if (blocked > 0) thread.lose(LostCause::signals_blocked, blocked);
  if (overrun > blocked) thread.lose(LostCause::timer_overrun, overrun - blocked);
}

void SameThreadSampler::note_idle_time(SampledThread& thread, uint64_t entered_cpu) {
  // What it took to get here is the signal's.
  const uint64_t since = thread.waiting_cpu != 0
                             ? thread.waiting_cpu
                             : entered_cpu - std::min(entered_cpu, delivery_ns_);
  thread.waiting_cpu = own_cpu_ns();
  idle_cpu_ns_.fetch_add(thread.waiting_cpu - since, std::memory_order_relaxed);
}

void SameThreadSampler::put_off(SampledThread& thread, const Rest& rest) {
  if (rest.ns == 0 || !thread.armed.load()) return;
  const uint64_t interval = interval_ns();
  const itimerspec when = {as_timespec(interval), as_timespec(std::max(rest.ns, interval))};
  timer_settime(thread.timer, 0, &when, nullptr);
  // It may have been disarmed meanwhile.
  if (!thread.armed.load()) end(thread);
  const uint64_t missed = rest.ns / interval;
  thread.ticks.fetch_add(missed, std::memory_order_relaxed);
  thread.lose(rest.cause, missed);
}

void SameThreadSampler::sample_here(SampledThread& thread, const ucontext_t& context,
                                    bool waiting) {
  if (thread.phase.load(std::memory_order_acquire) != SampledThread::Phase::live) {
    thread.lose(LostCause::thread_exiting);
    return;
  }
  if (jvm_.identity().current() != thread.java_thread) {
    thread.lose(LostCause::not_java);
    return;
  }
  const auto sp = get_register(context, Register::sp);
  if (sp < thread.stack_end + kStackReserve || sp >= thread.stack_base) {
    thread.lose(LostCause::stack_too_small);
    return;
  }
  const Slots::Taken slot = slots_.take(thread);
  if (!slot) return;
  {
    std::optional<SignalStack::Lent> lent;
    if (!slot->recovers_from_faults()) lent.emplace(slot->signal_stack());
    slot->walk(slots_.request_for(thread, context, /*same_thread=*/true));
  }
  count_sample(thread, waiting);
  slot->copy_window();
  slots_.hand_over(slot, thread);
}

}  // namespace

std::unique_ptr<Sampler> make_same_thread_sampler(const Options& options, Jvm& jvm,
                                                  WalkSetup setup) {
  return std::make_unique<SameThreadSampler>(options, jvm, std::move(setup));
}

}  // namespace framestorm::stress
