// Takes samples: which threads, when, and in which handler. What becomes of them is the judge's.
#pragma once

#include <signal.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>

#include "stress/agent/hand_over.h"
#include "stress/agent/interrupted_call.h"
#include "stress/agent/options.h"
#include "stress/agent/registry.h"
#include "stress/agent/sample_ring.h"
#include "stress/agent/walk_slot.h"
#include "stress/agent/walking_file.h"

namespace framestorm::stress {

class Sampler {
 public:
  // Slots: walks at one time, and samples that are judged closely at one time.
  static constexpr size_t kSlots = 64;
  static constexpr size_t kRingCells = 8192;

  // The JVM runs, the guard is installed. Throws SetupError, std::system_error. One per process.
  Sampler(const Options& options, Jvm& jvm, WalkSetup setup);

  // Threads come and go; on the thread itself (one that was there before: on any), VM running, not
  // in signal context. Once sampling is over none comes.
  void enter_thread(JNIEnv* env, jthread thread, int tid, void* java_thread);
  void leave_thread(JNIEnv* env, int tid);

  // Starts to sample after the warm-up. Before that nothing is armed.
  void start();
  // Ends sampling for good; returns when no handler is at work any more. Not in signal context.
  void stop();
  bool stopped() const { return stopping_.load(std::memory_order_acquire); }
  // Sampling time is over, as options.duration says.
  bool duration_over() const { return duration_over_.load(std::memory_order_acquire); }

  SampleRing& ring() { return ring_; }
  WalkSlot& slot(size_t index) { return *slots_[index]; }
  Registry& registry() { return registry_; }
  // An adapter of the kind that samples are taken with; null when none is. Not to walk with.
  const Walker* walker(WalkerId id) const { return slots_.front()->walker(id); }
  const Options& options() const { return options_; }
  // What a signal costs a thread here, without its handler.
  uint64_t delivery_ns() const { return delivery_ns_; }
  uint64_t late_handlers() const { return late_handlers_.load(std::memory_order_relaxed); }
  // The most threads that were sampled at once.
  size_t most_armed() const { return most_armed_.load(std::memory_order_relaxed); }
  // Processor time between samples that found a thread waiting each.
  uint64_t idle_cpu_ns() const { return idle_cpu_ns_.load(std::memory_order_relaxed); }
  uint64_t idle_samples() const { return idle_samples_.load(std::memory_order_relaxed); }

 private:
  static void handle_timer(int signo, siginfo_t* info, void* context);
  // The part of a request that is the same in all modes; numbers it.
  WalkRequest request_for(const SampledThread& thread, const ucontext_t& context);
  void count_sample(SampledThread& thread, bool waiting);
  void sample_here(SampledThread& thread, const ucontext_t& context, bool waiting);
  // Counts a timer's expirations: the one being handled, and those that were merged into it. On the
  // thread itself.
  void count_ticks(SampledThread& thread, uint64_t overrun) const;
  // For how long a thread is left alone after a sample, since it would not get anywhere; 0 mostly.
  struct Rest {
    uint64_t ns = 0;
    LostCause cause = LostCause::throttled;
  };
  // One that is in the midst of creating another thread or process: clone(2) begins anew with every
  // signal.
  static constexpr uint64_t kCloneTime = 1'000'000;
  // Of the sample that began at `begin_ns`. On the thread itself, or while it is armed on the only
  // one that samples it.
  Rest rest_after(SampledThread& thread, const InterruptedCall& call, uint64_t begin_ns);
  void put_off(SampledThread& thread, const Rest& rest);
  // A thread that waits does nothing but take signals. `entered_cpu` is its processor time when the
  // handler that found it so began.
  void note_idle_time(SampledThread& thread, uint64_t entered_cpu);
  WalkSlot* take_slot(size_t hint, int32_t* index);
  // Hands a slot's sample to the judge: with the slot when that is needed, else by copy.
  void hand_over(WalkSlot& slot, int32_t index, SampledThread& thread);

  // halting.cpp: the modes in which another thread walks.
  // One that was armed, for the halting thread to learn of.
  struct Arming {
    SampledThread* thread;
    uint64_t number;  // SampledThread::armings at that time
  };
  void install_halting();
  static void handle_halt(siginfo_t* info, void* context);
  void answer_halt(const siginfo_t& info, const ucontext_t& context);
  void run_halting();
  Rest sample_from_outside(SampledThread& thread);
  // False when there was no walk, and why is counted. With `walk_answer` the victim stands still.
  bool halt_and_walk(SampledThread& thread, WalkSlot& slot, Rest* rest);
  bool walk_answer(SampledThread& thread, const HandOver::Answer& answer, bool waiting,
                   WalkSlot& slot);
  void finish_walk(bool walked, WalkSlot& slot, int32_t index, SampledThread& thread);

  void watch_threads();
  // All with the time since they were called last, 0 at first.
  void choose_all(uint64_t scan_ns);
  void choose_running(uint64_t scan_ns);
  void disarm_quiet(uint64_t scan_ns);
  void choose_random(uint64_t turn_ns);
  enum class Arm : uint8_t {
    done,
    enough,    // as many are as there may be
    no_timer,  // the system has none left
    over       // the thread is gone, or sampling over
  };
  // With the registry's lock, as those that follow.
  Arm arm(SampledThread& thread);
  // Counts the ticks of the time that it was not armed for. On the watching thread.
  void miss(SampledThread& thread, uint64_t ns, Arm why) const;
  void disarm(SampledThread& thread);
  // Ends its timer too; the reference to it is the caller's to delete.
  jweak retire(SampledThread& thread);

  const Options options_;
  Jvm& jvm_;
  const WalkSetup setup_;
  Registry registry_;
  WalkingFile walking_;
  uint64_t delivery_ns_ = 0;
  std::vector<std::unique_ptr<WalkSlot>> slots_;
  SampleRing ring_;
  std::unordered_set<SampledThread*> armed_;  // with the registry's lock
  std::vector<Arming> newly_armed_;           // the same; not in same-thread mode
  std::atomic<size_t> most_armed_{0};
  std::atomic<uint64_t> numbers_{0};
  std::atomic<uint64_t> idle_samples_{0};
  std::atomic<uint64_t> idle_cpu_ns_{0};
  std::atomic<uint32_t> in_handlers_{0};
  std::atomic<bool> sampling_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> duration_over_{false};
  std::atomic<bool> timers_ran_out_{false};
  std::mt19937_64 random_;  // with the registry's lock
  std::thread watcher_;
  HandOver hand_over_;
  std::atomic<uint64_t> late_handlers_{0};
  std::thread halter_;  // not in same-thread mode
};

}  // namespace framestorm::stress
