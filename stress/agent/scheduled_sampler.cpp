// Separate-thread and unstopped: the sampler's own thread knows when each thread is due.
#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/base/clock.h"
#include "stress/agent/outside_sampler.h"

namespace framestorm::stress {
namespace {

constexpr uint64_t kLookPeriod = 2'000'000;  // between two looks for threads that were armed

// When armed threads are to be sampled next. A thread that is disarmed stays in it until its time
// comes, and is left out then: with thousands of threads, to look for it costs more than to sample.
class Schedule {
 public:
  struct Due {
    uint64_t at;
    SampledThread* thread;
    uint64_t arming;
    bool is_void() const {
      return !thread->armed.load(std::memory_order_relaxed) ||
             thread->armings.load(std::memory_order_relaxed) != arming;
    }
  };

  void add(const Due& due) {
    dues_.push_back(due);
    std::ranges::push_heap(dues_, kEarliestFirst, &Due::at);
  }
  // When the first is due; UINT64_MAX: none is.
  uint64_t next() {
    while (!dues_.empty() && dues_.front().is_void()) take();
    return dues_.empty() ? UINT64_MAX : dues_.front().at;
  }
  // There is one.
  Due take() {
    std::ranges::pop_heap(dues_, kEarliestFirst, &Due::at);
    const Due due = dues_.back();
    dues_.pop_back();
    return due;
  }
  // `armed` threads are: of those that come and go at long intervals the others would pile up.
  void keep_small(size_t armed) {
    constexpr size_t kSmall = 1024;
    if (dues_.size() < 2 * armed + kSmall) return;
    std::erase_if(dues_, [](const Due& due) { return due.is_void(); });
    std::ranges::make_heap(dues_, kEarliestFirst, &Due::at);
  }

 private:
  static constexpr std::ranges::greater kEarliestFirst = {};
  std::vector<Due> dues_;  // a heap
};

class ScheduledSampler : public OutsideSampler {
 public:
  using OutsideSampler::OutsideSampler;

 private:
  void begin(SampledThread& thread, uint64_t first_ns) override {
    newly_armed_.push_back({first_ns, &thread, thread.armings.load()});
  }
  void run() override;

  // With the registry's lock; due so long after the next look.
  std::vector<Schedule::Due> newly_armed_;
};

// A victim that runs on loses nothing by waiting for its walk.
class UnstoppedSampler final : public ScheduledSampler {
 public:
  using ScheduledSampler::ScheduledSampler;

 private:
  bool stays() const override { return false; }
  uint64_t begin_of_walk(const HandOver::Answer&) const override { return monotonic_ns(); }
  // Its ThreadEnd waits for the lock, so the JavaThread stays while it is walked.
  bool walk_asked(SampledThread& thread, WalkSlot& slot, Rest* rest) override {
    bool walked = false;
    registry_.with_lock([&] { walked = halt_and_walk(thread, slot, rest); });
    return walked;
  }
};

void ScheduledSampler::run() {
  const uint64_t interval = interval_ns();
  Schedule schedule;
  std::vector<Schedule::Due> newly_armed;
  uint64_t next_look = 0;
  while (!stopped()) {
    uint64_t now = monotonic_ns();
    if (now >= next_look) {
      newly_armed.clear();
      size_t armed = 0;
      registry_.with_lock([&] {
        newly_armed.swap(newly_armed_);
        armed = arming_.armed();
      });
      for (const Schedule::Due& due : newly_armed) {
        schedule.add({now + due.at, due.thread, due.arming});
      }
      schedule.keep_small(armed);
      now = monotonic_ns();
      next_look = now + kLookPeriod;
    }
    const uint64_t until = std::min(next_look, schedule.next());
    if (until > now) {
      const timespec wake = as_timespec(until);
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
      now = monotonic_ns();
    }
    if (schedule.next() > now) continue;
    Schedule::Due due = schedule.take();
    const uint64_t missed = (now - due.at) / interval;
    due.at += (1 + missed) * interval;
    due.thread->ticks.fetch_add(1 + missed, std::memory_order_relaxed);
    if (missed > 0) due.thread->lose(LostCause::timer_overrun, missed);
    const Rest rest = sample(*due.thread);
    if (const uint64_t free = monotonic_ns() + rest.ns; rest.ns != 0 && free > due.at) {
      const uint64_t put_off = (free - due.at + interval - 1) / interval;
      due.at += put_off * interval;
      due.thread->ticks.fetch_add(put_off, std::memory_order_relaxed);
      due.thread->lose(rest.cause, put_off);
    }
    schedule.add(due);
  }
}

}  // namespace

std::unique_ptr<Sampler> make_separate_thread_sampler(const Options& options, Jvm& jvm,
                                                      WalkSetup setup) {
  return std::make_unique<ScheduledSampler>(options, jvm, std::move(setup));
}

std::unique_ptr<Sampler> make_unstopped_sampler(const Options& options, Jvm& jvm, WalkSetup setup) {
  return std::make_unique<UnstoppedSampler>(options, jvm, std::move(setup));
}

}  // namespace framestorm::stress
