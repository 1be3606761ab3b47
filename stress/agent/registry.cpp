#include "stress/agent/registry.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "harness/base/clock.h"

namespace framestorm::stress {

bool is_gone(int tid) { return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH; }

void go_ahead() {
  constexpr int kNice = -15;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
}

SampledThread* Registry::enter(int tid, jweak java_object, void* java_thread, void* jni_env,
                               uintptr_t stack_base, uintptr_t stack_end, int64_t number,
                               ShadowStack* shadow,
                               const std::function<void(SampledThread&)>& retire) {
  const bool is_own = tid == gettid();
  const std::lock_guard lock(mutex_);
  SampledThread* thread = nullptr;
  if (const auto live = by_tid_.find(tid); live != by_tid_.end()) {
    thread = live->second;
    if (!is_own || thread->java_thread == java_thread) return nullptr;
    thread->phase.store(SampledThread::Phase::ending, std::memory_order_release);
    retire(*thread);
  } else if (const auto ending = ending_.find(tid); ending != ending_.end()) {
    if (!is_own) return nullptr;
    thread = ending->second;
    ending_.erase(ending);
  } else if (!free_.empty()) {
    thread = free_.back();
    free_.pop_back();
  } else if (records_.size() < kMaxThreads) {
    thread = &records_.emplace_back();
    thread->index = static_cast<uint32_t>(records_.size() - 1);
  } else {
    return nullptr;
  }
  thread->tid.store(tid);
  thread->thread = java_object;
  thread->java_thread = java_thread;
  thread->jni_env = jni_env;
  thread->stack_base = stack_base;
  thread->stack_end = stack_end;
  thread->number = number;
  thread->shadow.store(shadow);
  thread->mounted.store(false);
  thread->carries.store(false);
  thread->progress = {};
  thread->forwarded_seen = is_own ? Guard::forwarded_ns() : 0;
  thread->cpu_seen = thread_cpu_ns(tid);
  thread->delay_seen = 0;
  thread->missed_ns = 0;
  thread->phase.store(SampledThread::Phase::live, std::memory_order_release);
  by_tid_[tid] = thread;
  ++seen_;
  peak_ = std::max<uint64_t>(peak_, by_tid_.size());
  return thread;
}

void Registry::reap() {
  const std::lock_guard lock(mutex_);
  std::erase_if(ending_, [this](const auto& entry) {
    SampledThread* const thread = entry.second;
    // Signals that were on their way have come, or never will.
    if (!is_gone(entry.first)) return false;
    thread->armed.store(false);
    thread->has_timer = false;
    thread->tid.store(0);
    thread->phase.store(SampledThread::Phase::free);
    free_.push_back(thread);
    return true;
  });
}

Registry::Totals Registry::totals() {
  const std::lock_guard lock(mutex_);
  Totals totals;
  // Free ones, too: a sampler on another thread may have been at one when its thread went.
  for (const SampledThread& record : records_) {
    totals.ticks += record.ticks.load();
    totals.samples += record.samples.load();
    totals.cpu_ns += record.cpu_ns;
    totals.wall_ns += record.wall_ns;
    for (size_t i = 0; i < kLostCauses; ++i) totals.lost[i] += record.lost[i].load();
  }
  const uint64_t now = monotonic_ns();
  for (const auto& [tid, thread] : by_tid_) {
    if (!thread->armed) continue;
    totals.wall_ns += now - thread->armed_since_wall;
    const uint64_t cpu = thread_cpu_ns(tid);
    totals.cpu_ns += cpu > thread->armed_since_cpu ? cpu - thread->armed_since_cpu : 0;
  }
  totals.seen = seen_;
  totals.live = by_tid_.size();
  totals.peak = peak_;
  return totals;
}

}  // namespace framestorm::stress
