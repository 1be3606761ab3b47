// Queued: a CPU-time timer of each thread's own signals it. The handler puts the thread into a queue and
// goes on; the sampler's thread halts those in the queue again, one after the other, and walks them.
#include <algorithm>
#include <chrono>
#include <utility>

#include "harness/base/clock.h"
#include "stress/agent/outside_sampler.h"
#include "stress/agent/thread_timer.h"
#include "stress/agent/tick_queue.h"

namespace framestorm::stress {
namespace {

constexpr auto kLookPeriod = std::chrono::milliseconds(2);  // between two looks at whether to stop

class QueuedSampler final : public OutsideSampler {
 public:
  QueuedSampler(const Options& options, Jvm& jvm, WalkSetup setup);

 private:
  bool prepare(SampledThread& thread) override {
    return create_timer(thread, cpu_clock(thread.tid.load(std::memory_order_relaxed)));
  }
  void begin(SampledThread& thread, uint64_t first_ns) override {
    start_timer(thread, first_ns, interval_ns());
  }
  void end(SampledThread& thread) override { stop_timer(thread); }
  void forget(SampledThread& thread) override { delete_timer(thread); }
  void run() override;
  void settle() override;

  static void handle(int signo, siginfo_t* info, void* context);
  void put_off(SampledThread& thread, const Rest& rest);

  TickQueue queue_;
};

QueuedSampler* active = nullptr;

QueuedSampler::QueuedSampler(const Options& options, Jvm& jvm, WalkSetup setup)
    : OutsideSampler(options, jvm, std::move(setup)) {
  active = this;
  // The sampler's thread may be there at once. It is to halt what the timer has interrupted, not this
  // handler, below which walkers lose the frames of a thread in Java.
  install_handler(timer_signal(), &QueuedSampler::handle, halt_signal());
}

void QueuedSampler::handle(int, siginfo_t* info, void*) {
  const Handling handling(*active);
  SampledThread* const thread = thread_of(*info);
  if (thread == nullptr || active->stopped()) return;
  count_ticks(*thread, *info, active->interval_ns());
  if (!active->queue_.push(*thread)) thread->lose(LostCause::timer_overrun);
}

void QueuedSampler::run() {
  while (!stopped()) {
    SampledThread* const thread = queue_.pop(kLookPeriod);
    if (thread != nullptr) put_off(*thread, sample(*thread));
  }
}

void QueuedSampler::settle() {
  while (SampledThread* const thread = queue_.pop({})) thread->lose(LostCause::timer_overrun);
}

void QueuedSampler::put_off(SampledThread& thread, const Rest& rest) {
  // One that waits uses no CPU time, and so has no ticks.
  if (rest.ns == 0 || rest.cause == LostCause::waiting) return;
  registry_.with_lock([&] {
    if (!thread.armed.load()) return;
    start_timer(thread, std::max(rest.ns, interval_ns()), interval_ns());
  });
  const uint64_t missed = rest.ns / interval_ns();
  thread.ticks.fetch_add(missed, std::memory_order_relaxed);
  thread.lose(rest.cause, missed);
}

}  // namespace

std::unique_ptr<Sampler> make_queued_sampler(const Options& options, Jvm& jvm, WalkSetup setup) {
  return std::make_unique<QueuedSampler>(options, jvm, std::move(setup));
}

}  // namespace framestorm::stress
