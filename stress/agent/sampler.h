// Takes samples: which threads, when, and in which handler. What becomes of them is the judge's.
// This is what all modes share; each has a sampler of its own:
//
//   same-thread      same_thread_sampler.cpp   the walk runs in the sampled thread's handler
//   separate-thread  scheduled_sampler.cpp     another thread walks it while it stands still
//   queued           queued_sampler.cpp        so it does, for threads whose timers told it to
//   unstopped        scheduled_sampler.cpp     another thread walks it while it runs on
#pragma once

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>

#include "stress/agent/arming.h"
#include "stress/agent/interrupted_call.h"
#include "stress/agent/options.h"
#include "stress/agent/registry.h"
#include "stress/agent/samples_blocked.h"
#include "stress/agent/slots.h"

namespace framestorm::stress {

class Sampler : protected Ticks {
 public:
  // Threads come and go; on the thread itself (one that was there before: on any), VM running, not
  // in signal context. Once sampling is over none comes.
  void enter_thread(JNIEnv* env, jthread thread, int tid, void* java_thread);
  void leave_thread(JNIEnv* env, int tid);

  // Walks the calling thread, whose record it is, in a native method that Java called, and asks
  // GetStackTrace beside it; for the judge. Nothing once sampling has stopped.
  void check(SampledThread& thread, jvmtiEnv* jvmti);

  // Starts to sample after the warm-up. Before that nothing is armed.
  void start();
  // Ends sampling for good; returns when no handler is at work any more. Not in signal context.
  void stop();
  bool stopped() const { return arming_.stopped(); }
  // Sampling time is over, as options.duration says.
  bool duration_over() const { return arming_.duration_over(); }

  SampleRing& ring() { return slots_.ring(); }
  WalkSlot& slot(size_t index) { return slots_.at(index); }
  Registry& registry() { return registry_; }
  // An adapter of the kind that samples are taken with; null when none is. Not to walk with.
  const Walker* walker(WalkerId id) const { return slots_.at(0).walker(id); }
  // What a signal costs a thread here, without its handler.
  uint64_t delivery_ns() const { return delivery_ns_; }
  uint64_t late_handlers() const { return late_handlers_.load(std::memory_order_relaxed); }
  size_t most_armed() const { return arming_.most_armed(); }
  // Processor time between samples that found a thread waiting each.
  uint64_t idle_cpu_ns() const { return idle_cpu_ns_.load(std::memory_order_relaxed); }
  uint64_t idle_samples() const { return idle_samples_.load(std::memory_order_relaxed); }

 protected:
  // The JVM runs, the guard is installed. Throws SetupError, std::system_error. One per process.
  Sampler(const Options& options, Jvm& jvm, WalkSetup setup);

  // A thread of the mode's own, all signals blocked: started with the others, and joined once
  // sampling is over. For modes that need one.
  virtual void start_own_thread() {}
  virtual void join_own_thread() {}
  // Sampling is over, and no handler and no thread of the mode's own is at work any more: what is due
  // and was not taken is counted.
  virtual void settle() {}

  // A handler of this sampler's is at work while it lasts; keeps errno.
  class Handling {
   public:
    explicit Handling(Sampler& sampler) : sampler_(sampler) { sampler_.in_handlers_.fetch_add(1); }
    ~Handling() {
      sampler_.in_handlers_.fetch_sub(1);
      errno = errno_;
    }
    Handling(const Handling&) = delete;
    Handling& operator=(const Handling&) = delete;

   private:
    const int errno_ = errno;
    Sampler& sampler_;
  };

  // For how long a thread is left alone after a sample, since it would not get anywhere; 0 mostly.
  struct Rest {
    uint64_t ns = 0;
    LostCause cause = LostCause::throttled;
  };
  // Of the sample that began at `begin_ns`. On the thread itself, or while it is armed on the only
  // one that samples it.
  Rest rest_after(SampledThread& thread, const InterruptedCall& call, uint64_t begin_ns);
  void count_sample(SampledThread& thread, bool waiting);
  uint64_t interval_ns() const { return static_cast<uint64_t>(options_.interval.count()); }

  const Options options_;
  Jvm& jvm_;
  Registry registry_;
  Slots slots_;
  Arming arming_;
  const uint64_t delivery_ns_;
  std::atomic<uint64_t> late_handlers_{0};
  std::atomic<uint64_t> idle_cpu_ns_{0};

 private:
  std::atomic<uint64_t> idle_samples_{0};
  std::atomic<uint32_t> in_handlers_{0};
};

// Installs `handler` for a signal of the samplers', not on a signal stack. `blocked`: a signal that
// waits until the handler has returned. Throws std::system_error.
void install_handler(int signo, void (*handler)(int, siginfo_t*, void*),
                     std::optional<int> blocked = {});

// One per process and mode; what Sampler's constructor throws.
std::unique_ptr<Sampler> make_same_thread_sampler(const Options& options, Jvm& jvm,
                                                  WalkSetup setup);
std::unique_ptr<Sampler> make_separate_thread_sampler(const Options& options, Jvm& jvm,
                                                      WalkSetup setup);
std::unique_ptr<Sampler> make_queued_sampler(const Options& options, Jvm& jvm, WalkSetup setup);
std::unique_ptr<Sampler> make_unstopped_sampler(const Options& options, Jvm& jvm, WalkSetup setup);
// That of the options' mode.
std::unique_ptr<Sampler> make_sampler(const Options& options, Jvm& jvm, WalkSetup setup);

}  // namespace framestorm::stress
