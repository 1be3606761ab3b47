// The Java threads of the process as the sampler knows them. A record stays where it is for good,
// so that a signal handler can be given its address; it is used again once its thread is gone, or
// by the same thread when it is attached again.
#pragma once

#include <jni.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "stress/agent/progress.h"
#include "stress/agent/sample.h"
#include "stress/agent/waiting.h"
#include "stress/shadow/shadow_stack.h"

namespace framestorm::stress {

struct SampledThread {
  enum class Phase : uint8_t {
    free,
    live,
    ending  // ThreadEnd was posted: signals may still come, samples are not taken
  };

  uint32_t index = 0;
  std::atomic<Phase> phase{Phase::free};
  std::atomic<int> tid{0};
  // Set before `live`, constant while it lasts.
  jweak thread = nullptr;  // java.lang.Thread
  void* java_thread = nullptr;
  void* jni_env = nullptr;
  uintptr_t stack_base = 0, stack_end = 0;
  int64_t number = 0;  // java.lang.Thread.tid

  // The shadow stack of the logical thread that runs on it; null: nothing was ever pushed. Written on
  // the thread itself.
  std::atomic<ShadowStack*> shadow{nullptr};
  std::atomic<bool> mounted{false};  // that one is a virtual thread
  std::atomic<bool> carries{false};  // it has been, at some time

  // The handler's, on the thread itself; the counts are of all threads that had this record.
  std::atomic<uint64_t> ticks{0};    // expirations, overruns included
  std::atomic<uint64_t> samples{0};  // walks
  std::array<std::atomic<uint64_t>, kLostCauses> lost = {};
  Progress progress;
  Waiting waiting;
  // Its processor time at the end of its last handler, if that found it waiting; else 0.
  uint64_t waiting_cpu = 0;
  uint64_t forwarded_seen = 0;  // its Guard::forwarded_ns() at its last tick

  // TickQueue's.
  std::atomic<bool> queued{false};
  SampledThread* behind = nullptr;

  void lose(LostCause cause, uint64_t count = 1) {
    lost[static_cast<size_t>(cause)].fetch_add(count, std::memory_order_relaxed);
  }

  // The owner of the timers', under the registry's lock.
  timer_t timer = {};
  bool has_timer = false;
  std::atomic<bool> armed{false};  // the handler puts off only an armed timer
  // How often this record was armed: what was planned for an earlier time is void.
  std::atomic<uint64_t> armings{0};
  uint64_t armed_since_cpu = 0, armed_since_wall = 0;
  uint64_t cpu_seen = 0;
  uint64_t delay_seen = 0;  // for how long it had waited for a processor at the last look
  // Of the time for which it was due to be armed and could not be: of less than a tick yet.
  uint64_t missed_ns = 0;
  uint64_t waited_seen = 0;  // of waiting.total(), at the last scan
  uint32_t quiet_scans = 0;
  uint64_t cpu_ns = 0, wall_ns = 0;  // while armed, of intervals that are over
};

class Registry {
 public:
  static constexpr size_t kMaxThreads = size_t{1} << 16;

  // A thread that starts or was there before; null when it is known or there are too many. Any
  // thread, not in signal context.
  // One that was attached before, and left, gets the same record again: signals for it may still be
  // on their way, and find the same thread. If its leaving was not heard of, `retire` is called
  // with that record, as leave() calls `last`. Both only where the thread itself calls: who calls
  // for another has it from a list, and it may have left or begun anew since.
  SampledThread* enter(int tid, jweak thread, void* java_thread, void* jni_env,
                       uintptr_t stack_base, uintptr_t stack_end, int64_t number,
                       ShadowStack* shadow, const std::function<void(SampledThread&)>& retire);
  // Its ThreadEnd: `last` is called with the record before it stops being live. On the thread.
  template <typename Function>
  void leave(int tid, Function last) {
    const std::lock_guard lock(mutex_);
    const auto found = by_tid_.find(tid);
    if (found == by_tid_.end()) return;
    SampledThread& thread = *found->second;
    by_tid_.erase(found);
    thread.phase.store(SampledThread::Phase::ending, std::memory_order_release);
    last(thread);
    ending_[tid] = &thread;
  }
  // With the lock held, for a live thread of that id if there is one.
  template <typename Function>
  void find(int tid, Function function) {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_tid_.find(tid); found != by_tid_.end()) function(*found->second);
  }
  // With the lock held, for each live thread.
  template <typename Function>
  void for_each(Function function) {
    const std::lock_guard lock(mutex_);
    for (const auto& [tid, thread] : by_tid_) function(*thread);
  }
  template <typename Function>
  void with_lock(Function function) {
    const std::lock_guard lock(mutex_);
    function();
  }
  // Makes records of threads that are gone free again.
  void reap();

  struct Totals {
    uint64_t ticks = 0, samples = 0;
    uint64_t cpu_ns = 0, wall_ns = 0;
    std::array<uint64_t, kLostCauses> lost = {};
    uint64_t seen = 0, live = 0, peak = 0;
  };
  // Over all threads that ever were.
  Totals totals();

 private:
  std::mutex mutex_;
  std::deque<SampledThread> records_;
  std::vector<SampledThread*> free_;
  std::unordered_map<int, SampledThread*> by_tid_;  // live
  std::unordered_map<int, SampledThread*> ending_;  // also by tid
  uint64_t seen_ = 0, peak_ = 0;
};

// No thread of this process has that id any more.
bool is_gone(int tid);

// The calling thread is one of the agent's own: on a full machine it goes ahead of the program's
// threads, where the process may have that (as root), so that samples are taken and judged in time.
void go_ahead();

}  // namespace framestorm::stress
