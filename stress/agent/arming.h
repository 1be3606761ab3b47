// Which threads are sampled, and when no more: a thread of its own looks at all of them. How an
// armed thread comes to be sampled is the mode's (Ticks).
#pragma once

#include <atomic>
#include <random>
#include <thread>
#include <unordered_set>

#include "stress/agent/options.h"
#include "stress/agent/registry.h"

namespace framestorm::stress {

// What makes an armed thread be sampled at every interval. With the registry's lock.
class Ticks {
 public:
  Ticks() = default;
  virtual ~Ticks() = default;
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;

  // False when the system has nothing left to tick with.
  virtual bool prepare(SampledThread&) { return true; }
  // `first_ns`: from now to the first tick. The thread's `armings` is that of this arming.
  virtual void begin(SampledThread& thread, uint64_t first_ns) = 0;
  virtual void end(SampledThread&) {}
  // Its thread is gone, or sampling over.
  virtual void forget(SampledThread&) {}
};

class Arming {
 public:
  // All have to outlive it.
  Arming(const Options& options, Registry& registry, Ticks& ticks)
      : options_(options), registry_(registry), ticks_(ticks), random_(options.seed) {}

  // Chooses threads from the end of the warm-up on.
  void start();
  // Chooses none any more. False: it was called before.
  bool stop();
  void disarm_all();
  bool stopped() const { return stopping_.load(std::memory_order_acquire); }
  // Sampling time is over, as options.duration says.
  bool duration_over() const { return duration_over_.load(std::memory_order_acquire); }

  // A thread that starts is running; if it is not, the next scans will tell. On that thread.
  void arm_new(SampledThread& thread);
  // The thread is gone; with the registry's lock. The reference to it is the caller's to delete.
  jweak retire(SampledThread& thread);

  // With the registry's lock.
  size_t armed() const { return armed_.size(); }
  // The most threads that were sampled at once.
  size_t most_armed() const { return most_armed_.load(std::memory_order_relaxed); }

 private:
  enum class Arm : uint8_t {
    done,
    enough,    // as many are as there may be
    no_timer,  // the system has none left
    over       // the thread is gone, or sampling over
  };
  void watch();
  void choose(uint64_t now);
  // All with the time since they were called last, 0 at first.
  void choose_all(uint64_t scan_ns);
  void choose_running(uint64_t scan_ns);
  void choose_random(uint64_t turn_ns);
  void disarm_quiet(uint64_t scan_ns);
  // With the registry's lock, as those that follow.
  Arm arm(SampledThread& thread);
  void disarm(SampledThread& thread);
  // Counts the ticks of the time that it was not armed for. On the watching thread.
  void miss(SampledThread& thread, uint64_t ns, Arm why) const;
  void warn_once();

  const Options& options_;
  Registry& registry_;
  Ticks& ticks_;
  std::unordered_set<SampledThread*> armed_;  // with the registry's lock
  std::mt19937_64 random_;                    // the same
  std::atomic<size_t> most_armed_{0};
  std::atomic<bool> sampling_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> duration_over_{false};
  std::atomic<bool> timers_ran_out_{false};
  bool warned_ = false;
  uint64_t last_scan_ = 0;
  uint64_t last_turn_ = 0;
  std::thread watcher_;
};

}  // namespace framestorm::stress
