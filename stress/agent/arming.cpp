#include "stress/agent/arming.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/clock.h"

namespace framestorm::stress {
namespace {

constexpr uint64_t kScan = 10'000'000;         // between two looks at the threads
constexpr uint64_t kRandomTurn = 100'000'000;  // for how long the same random threads are sampled
// A thread that has a processor, or waits for one, for this share of a scan is running; while it is
// armed it counts as idle after so many scans of which it was waiting for the most part.
constexpr double kRunningShare = 0.2;
constexpr uint32_t kQuietScans = 3;

// Running threads sampled at once, per core. Sampling takes up to nine tenths of a thread's time at
// short intervals: with thousands of them sampled, nothing else on the machine would go on.
constexpr size_t kArmedPerCore = 32;

// For how long a thread was ready to run and had no processor: the second number of Linux's
// Documentation/scheduler/sched-stats.rst. 0 where that is not told, and of a thread that is gone.
uint64_t waited_for_processor_ns(int tid) {
  std::ifstream stats("/proc/self/task/" + std::to_string(tid) + "/schedstat");
  uint64_t ran = 0, waited = 0;
  return stats >> ran >> waited ? waited : 0;
}

}  // namespace

void Arming::start() {
  watcher_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "fs-threads");
    go_ahead();
    watch();
  });
}

bool Arming::stop() {
  if (stopping_.exchange(true)) return false;
  if (watcher_.joinable()) watcher_.join();
  return true;
}

void Arming::disarm_all() {
  registry_.for_each([this](SampledThread& thread) { disarm(thread); });
}

void Arming::arm_new(SampledThread& thread) {
  if (options_.threads == ThreadChoice::random) return;
  if (!sampling_.load(std::memory_order_acquire)) return;
  registry_.with_lock([&] { arm(thread); });
}

jweak Arming::retire(SampledThread& thread) {
  disarm(thread);
  ticks_.forget(thread);
  return std::exchange(thread.thread, nullptr);
}

Arming::Arm Arming::arm(SampledThread& thread) {
  static const size_t room = kArmedPerCore * std::max(1U, std::thread::hardware_concurrency());
  if (thread.armed) return Arm::done;
  if (stopping_.load(std::memory_order_relaxed)) return Arm::over;
  if (options_.threads == ThreadChoice::running && armed_.size() >= room) return Arm::enough;
  const int tid = thread.tid.load(std::memory_order_relaxed);
  if (!ticks_.prepare(thread)) {
    if (is_gone(tid)) return Arm::over;
    timers_ran_out_.store(true, std::memory_order_relaxed);
    return Arm::no_timer;
  }
  const auto interval = static_cast<uint64_t>(options_.interval.count());
  thread.armed_since_cpu = thread_cpu_ns(tid);
  thread.armed_since_wall = monotonic_ns();
  // What it did while it was not sampled is neither waiting nor running.
  thread.waiting.forget();
  thread.waiting_cpu = 0;
  thread.waited_seen = 0;
  thread.quiet_scans = 0;
  thread.armings.fetch_add(1);
  thread.armed.store(true);
  armed_.insert(&thread);
  most_armed_.store(std::max(armed_.size(), most_armed()), std::memory_order_relaxed);
  // Threads that are armed together are not interrupted together.
  ticks_.begin(thread, 1 + random_() % interval);
  return Arm::done;
}

void Arming::disarm(SampledThread& thread) {
  if (!thread.armed.exchange(false)) return;
  armed_.erase(&thread);
  ticks_.end(thread);
  const uint64_t cpu = thread_cpu_ns(thread.tid.load(std::memory_order_relaxed));
  thread.cpu_ns += cpu > thread.armed_since_cpu ? cpu - thread.armed_since_cpu : 0;
  thread.wall_ns += monotonic_ns() - thread.armed_since_wall;
  thread.cpu_seen = cpu;
}

void Arming::miss(SampledThread& thread, uint64_t ns, Arm why) const {
  if (why == Arm::done || why == Arm::over) return;
  const auto interval = static_cast<uint64_t>(options_.interval.count());
  thread.missed_ns += ns;
  const uint64_t missed = thread.missed_ns / interval;
  thread.missed_ns %= interval;
  thread.ticks.fetch_add(missed, std::memory_order_relaxed);
  thread.lose(why == Arm::no_timer ? LostCause::no_timer : LostCause::throttled, missed);
}

void Arming::watch() {
  const uint64_t begin = monotonic_ns();
  uint64_t last_look = 0;
  uint64_t next_scan = 0;
  while (!stopped()) {
    const uint64_t now = monotonic_ns();
    const uint64_t cpu_before = own_cpu_ns();
    const bool is_scan = now >= next_scan;
    if (is_scan) registry_.reap();
    const double elapsed = static_cast<double>(now - begin) / static_cast<double>(kSecond);
    if (elapsed >= options_.warmup) {
      if (options_.duration && elapsed >= options_.warmup + *options_.duration) {
        duration_over_.store(true, std::memory_order_release);
        return;
      }
      sampling_.store(true, std::memory_order_release);
      if (options_.threads == ThreadChoice::running) disarm_quiet(now - last_look);
      last_look = now;
      if (is_scan) choose(now);
    }
    // With thousands of threads a look at all of them takes its time: not more than a tenth of it.
    // By the clock it is no measure: a sampled thread may have the registry's lock.
    if (is_scan) next_scan = now + 10 * (own_cpu_ns() - cpu_before);
    const timespec nap = as_timespec(kScan);
    nanosleep(&nap, nullptr);
  }
}

void Arming::choose(uint64_t now) {
  const uint64_t scan_ns = last_scan_ == 0 ? 0 : now - last_scan_;
  if (options_.threads == ThreadChoice::all) {
    choose_all(scan_ns);
  } else if (options_.threads == ThreadChoice::running) {
    choose_running(scan_ns);
  } else if (now - last_turn_ >= kRandomTurn) {
    choose_random(last_turn_ == 0 ? 0 : now - last_turn_);
    last_turn_ = now;
  }
  last_scan_ = now;
  warn_once();
}

void Arming::warn_once() {
  if (!timers_ran_out_.load(std::memory_order_relaxed) || std::exchange(warned_, true)) return;
  std::fprintf(stderr,
               "framestorm: the system has no timer for some of the threads: they are not sampled "
               "('no-timer' of stats.jsonl). Allow this user more pending signals (ulimit -i), or "
               "take mode=separate-thread\n");
}

void Arming::disarm_quiet(uint64_t scan_ns) {
  registry_.with_lock([&] {
    std::vector<SampledThread*> quiet;
    for (SampledThread* thread : armed_) {
      const uint64_t waited = thread->waiting.total();
      const bool is_quiet = 2 * (waited - thread->waited_seen) > scan_ns;
      thread->waited_seen = waited;
      thread->quiet_scans = is_quiet ? thread->quiet_scans + 1 : 0;
      if (thread->quiet_scans >= kQuietScans) quiet.push_back(thread);
    }
    for (SampledThread* thread : quiet) {
      disarm(*thread);
      thread->delay_seen = waited_for_processor_ns(thread->tid.load(std::memory_order_relaxed));
    }
  });
}

void Arming::choose_all(uint64_t scan_ns) {
  registry_.for_each([&](SampledThread& thread) { miss(thread, scan_ns, arm(thread)); });
}

void Arming::choose_running(uint64_t scan_ns) {
  registry_.for_each([&](SampledThread& thread) {
    if (thread.armed) return;
    const uint64_t cpu = thread_cpu_ns(thread.tid.load(std::memory_order_relaxed));
    const uint64_t used = cpu > thread.cpu_seen ? cpu - thread.cpu_seen : 0;
    thread.cpu_seen = cpu;
    if (used == 0) return;
    // On a full machine a thread that always runs has a small share of the processors.
    const uint64_t delay = waited_for_processor_ns(thread.tid.load(std::memory_order_relaxed));
    const uint64_t delayed = delay > thread.delay_seen ? delay - thread.delay_seen : 0;
    thread.delay_seen = delay;
    const auto ready = static_cast<double>(used + delayed);
    if (scan_ns == 0 || ready <= kRunningShare * static_cast<double>(scan_ns)) return;
    miss(thread, used, arm(thread));
  });
}

void Arming::choose_random(uint64_t turn_ns) {
  std::vector<SampledThread*> live;
  registry_.for_each([&](SampledThread& thread) { live.push_back(&thread); });
  std::ranges::sort(live, {}, &SampledThread::index);
  registry_.with_lock([&] { std::ranges::shuffle(live, random_); });
  live.resize(std::min<size_t>(live.size(), options_.random_threads));
  const std::unordered_set<SampledThread*> chosen(live.begin(), live.end());
  // All of the last turn's go before one comes: never more than asked for are sampled.
  registry_.for_each([&](SampledThread& thread) {
    if (!chosen.contains(&thread)) disarm(thread);
  });
  registry_.for_each([&](SampledThread& thread) {
    if (chosen.contains(&thread)) miss(thread, turn_ns, arm(thread));
  });
}

}  // namespace framestorm::stress
