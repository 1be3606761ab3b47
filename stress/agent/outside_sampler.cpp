// Separate-thread and unstopped: one thread that asks the others, one after the other, for their
// context (hand_over.h) and walks them from outside. Nothing is allocated and no lock taken while a
// victim stands still: it may have the allocator's.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/clock.h"
#include "stress/agent/hand_over.h"
#include "stress/agent/sampler.h"

namespace framestorm::stress {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20);
constexpr uint64_t kLookPeriod = 2'000'000;  // between two looks for threads that were armed

// The request's number goes with the signal. False when the thread is gone or its queue is full.
bool send(int tid, uint64_t number) {
  siginfo_t info = {};
  info.si_signo = halt_signal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(number);
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, halt_signal(), &info) == 0;
}

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

class OutsideSampler : public Sampler {
 public:
  OutsideSampler(const Options& options, Jvm& jvm, WalkSetup setup);

 protected:
  // False when there was no walk, and why is counted.
  bool halt_and_walk(SampledThread& thread, WalkSlot& slot, Rest* rest);

 private:
  // Whether a victim stands still while it is walked.
  virtual bool stays() const = 0;
  virtual bool walk_asked(SampledThread& thread, WalkSlot& slot, Rest* rest) = 0;
  // Of the time that the victim loses.
  virtual uint64_t begin_of_walk(const HandOver::Answer& answer) const = 0;

  void begin(SampledThread& thread, uint64_t first_ns) override;
  void start_own_thread() override;
  void join_own_thread() override;

  static void handle(int signo, siginfo_t* info, void* context);
  void run();
  Rest sample(SampledThread& thread);
  bool walk_answer(SampledThread& thread, const HandOver::Answer& answer, bool waiting,
                   WalkSlot& slot);

  HandOver hand_over_;
  // With the registry's lock; due so long after the next look.
  std::vector<Schedule::Due> newly_armed_;
  std::thread thread_;
};

// Since it answered, which on a full machine is long before this thread comes to see it, the victim
// stands still.
class SeparateThreadSampler final : public OutsideSampler {
 public:
  using OutsideSampler::OutsideSampler;

 private:
  bool stays() const override { return true; }
  uint64_t begin_of_walk(const HandOver::Answer& answer) const override { return answer.given_ns; }
  bool walk_asked(SampledThread& thread, WalkSlot& slot, Rest* rest) override {
    return halt_and_walk(thread, slot, rest);
  }
};

// A victim that runs on loses nothing by waiting for its walk.
class UnstoppedSampler final : public OutsideSampler {
 public:
  using OutsideSampler::OutsideSampler;

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

OutsideSampler* active = nullptr;

OutsideSampler::OutsideSampler(const Options& options, Jvm& jvm, WalkSetup setup)
    : Sampler(options, jvm, std::move(setup)) {
  active = this;
  install_handler(halt_signal(), &OutsideSampler::handle);
}

void OutsideSampler::begin(SampledThread& thread, uint64_t first_ns) {
  newly_armed_.push_back({first_ns, &thread, thread.armings.load()});
}

void OutsideSampler::start_own_thread() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "fs-sampler");
    go_ahead();
    run();
  });
}

void OutsideSampler::join_own_thread() {
  if (thread_.joinable()) thread_.join();
}

void OutsideSampler::handle(int, siginfo_t* info, void* context) {
  const Handling handling(*active);
  const auto number = reinterpret_cast<uint64_t>(info->si_value.sival_ptr);
  const bool in_time =
      info->si_code == SI_QUEUE &&
      active->hand_over_.answer(number, *static_cast<const ucontext_t*>(context),
                                active->jvm_.identity().current(), active->stays());
  if (!in_time) active->late_handlers_.fetch_add(1, std::memory_order_relaxed);
}

void OutsideSampler::run() {
  prctl(PR_SET_TIMERSLACK, 1UL);
  // This thread blocks all signals, but the kernel kills a thread for a fault that it blocks.
  sigset_t contained;
  sigemptyset(&contained);
  for (const int signo : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, Guard::watchdog_signal()}) {
    sigaddset(&contained, signo);
  }
  pthread_sigmask(SIG_UNBLOCK, &contained, nullptr);
  Guard::attach_thread();
  // The first time on a thread these allocate.
  {
    const ThreadIdentity::Scoped nobody(jvm_.identity(), nullptr);
  }
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

Sampler::Rest OutsideSampler::sample(SampledThread& thread) {
  Rest rest;
  const Slots::Taken slot = slots_.take(thread);
  if (!slot) return rest;
  if (walk_asked(thread, *slot, &rest)) {
    slots_.hand_over(slot, thread);
  } else {
    slot->release();
  }
  return rest;
}

bool OutsideSampler::halt_and_walk(SampledThread& thread, WalkSlot& slot, Rest* rest) {
  if (thread.phase.load(std::memory_order_acquire) != SampledThread::Phase::live) {
    thread.lose(LostCause::thread_exiting);
    return false;
  }
  const int tid = thread.tid.load(std::memory_order_relaxed);
  const uint64_t number = hand_over_.ask();
  if (!send(tid, number)) {
    hand_over_.give_up(number);
    thread.lose(errno == ESRCH ? LostCause::thread_exiting : LostCause::halt_timeout);
    return false;
  }
  HandOver::Answer answer;
  if (!hand_over_.await(number, kPatience, &answer)) {
    thread.lose(LostCause::halt_timeout);
    return false;
  }
  // The victim stands still, if it does, whatever happens to the walk, until it is released.
  const uint64_t begin_ns = begin_of_walk(answer);
  const InterruptedCall call = interrupted_call(*answer.context);
  const bool is_walked = walk_answer(thread, answer, call.waiting, slot);
  // Released, it may leave and be entered again, which begins its record anew.
  *rest = rest_after(thread, call, begin_ns);
  hand_over_.release(number);
  return is_walked;
}

// With an answer the victim stands still, if it does in this mode.
bool OutsideSampler::walk_answer(SampledThread& thread, const HandOver::Answer& answer,
                                 bool waiting, WalkSlot& slot) {
  // It may have left since it was asked, and be just about to be entered again.
  if (thread.phase.load(std::memory_order_acquire) != SampledThread::Phase::live) {
    thread.lose(LostCause::thread_exiting);
    return false;
  }
  if (answer.java_thread != thread.java_thread) {
    thread.lose(LostCause::not_java);
    return false;
  }
  slot.walk(slots_.request_for(thread, *answer.context, /*same_thread=*/false));
  count_sample(thread, waiting);
  slot.copy_window();
  return true;
}

}  // namespace

std::unique_ptr<Sampler> make_outside_sampler(const Options& options, Jvm& jvm, WalkSetup setup) {
  if (options.mode == SamplingMode::unstopped) {
    return std::make_unique<UnstoppedSampler>(options, jvm, std::move(setup));
  }
  return std::make_unique<SeparateThreadSampler>(options, jvm, std::move(setup));
}

}  // namespace framestorm::stress
