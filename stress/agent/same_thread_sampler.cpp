// Same-thread: a timer of each thread's own signals it, and it walks itself in the handler.
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/base/clock.h"
#include "harness/victim/context.h"
#include "stress/agent/sampler.h"
#include "stress/agent/thread_timer.h"

namespace framestorm::stress {
namespace {

// HotSpot's guard pages and room for a handler and a walk above them.
constexpr uintptr_t kStackReserve = uintptr_t{48} << 10;

class SameThreadSampler final : public Sampler {
 public:
  SameThreadSampler(const Options& options, Jvm& jvm, WalkSetup setup);

 private:
  bool prepare(SampledThread& thread) override { return create_timer(thread, CLOCK_MONOTONIC); }
  void begin(SampledThread& thread, uint64_t first_ns) override {
    start_timer(thread, first_ns, interval_ns());
  }
  void end(SampledThread& thread) override { stop_timer(thread); }
  void forget(SampledThread& thread) override { delete_timer(thread); }

  static void handle(int signo, siginfo_t* info, void* context);
  void tick(SampledThread& thread, const ucontext_t& context);
  void sample_here(SampledThread& thread, const ucontext_t& context, bool waiting);
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

void SameThreadSampler::handle(int, siginfo_t* info, void* context) {
  const Handling handling(*active);
  SampledThread* const thread = thread_of(*info);
  if (thread == nullptr || active->stopped()) return;
  count_ticks(*thread, *info, active->interval_ns());
  active->tick(*thread, *static_cast<const ucontext_t*>(context));
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
  start_timer(thread, std::max(rest.ns, interval), interval);
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
