// Sampler, separate-thread and unstopped: one thread that asks the others, one after the other, for
// their context (hand_over.h) and walks them from outside. Nothing is allocated and no lock taken
// while a victim stands still: it may have the allocator's.
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <random>
#include <system_error>
#include <vector>

#include "stress/agent/sampler.h"

#include "harness/base/clock.h"

namespace framestorm::stress {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20);
constexpr uint64_t kLookPeriod = 2'000'000;  // between two looks for threads that were armed

int halt_signal() { return SIGRTMAX - 8; }

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

}  // namespace

void Sampler::install_halting() {
  struct sigaction action = {};
  action.sa_sigaction = [](int, siginfo_t* info, void* context) { handle_halt(info, context); };
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(halt_signal(), &action, nullptr) != 0) {
    throw std::system_error(errno, std::generic_category(), "installing the halting handler");
  }
}

void Sampler::answer_halt(const siginfo_t& info, const ucontext_t& context) {
  in_handlers_.fetch_add(1);
  const auto number = reinterpret_cast<uint64_t>(info.si_value.sival_ptr);
  const bool in_time =
      info.si_code == SI_QUEUE && hand_over_.answer(number, context, jvm_.identity().current(),
                                                    options_.mode == SamplingMode::separate_thread);
  if (!in_time) late_handlers_.fetch_add(1, std::memory_order_relaxed);
  in_handlers_.fetch_sub(1);
}

void Sampler::run_halting() {
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
  const auto interval = static_cast<uint64_t>(options_.interval.count());
  // Its own: the sampler's belongs to who has the registry's lock.
  std::mt19937_64 random(options_.seed);
  Schedule schedule;
  std::vector<Arming> newly_armed;
  uint64_t next_look = 0;
  while (!stopped()) {
    uint64_t now = monotonic_ns();
    if (now >= next_look) {
      newly_armed.clear();
      size_t armed = 0;
      registry_.with_lock([&] {
        newly_armed.swap(newly_armed_);
        armed = armed_.size();
      });
      for (const Arming& arming : newly_armed) {
        schedule.add({now + random() % interval, arming.thread, arming.number});
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
    const Rest rest = sample_from_outside(*due.thread);
    if (const uint64_t free = monotonic_ns() + rest.ns; rest.ns != 0 && free > due.at) {
      const uint64_t put_off = (free - due.at + interval - 1) / interval;
      due.at += put_off * interval;
      due.thread->ticks.fetch_add(put_off, std::memory_order_relaxed);
      due.thread->lose(rest.cause, put_off);
    }
    schedule.add(due);
  }
}

Sampler::Rest Sampler::sample_from_outside(SampledThread& thread) {
  Rest rest;
  int32_t index = 0;
  WalkSlot* const slot = take_slot(thread.index, &index);
  if (slot == nullptr) {
    thread.lose(LostCause::buffer_full);
    return rest;
  }
  if (options_.mode == SamplingMode::unstopped) {
    // Its ThreadEnd waits for the lock, so the JavaThread stays while it is walked.
    bool walked = false;
    registry_.with_lock([&] { walked = halt_and_walk(thread, *slot, &rest); });
    finish_walk(walked, *slot, index, thread);
  } else {
    finish_walk(halt_and_walk(thread, *slot, &rest), *slot, index, thread);
  }
  return rest;
}

void Sampler::finish_walk(bool walked, WalkSlot& slot, int32_t index, SampledThread& thread) {
  if (walked) {
    hand_over(slot, index, thread);
  } else {
    slot.release();
  }
}

bool Sampler::halt_and_walk(SampledThread& thread, WalkSlot& slot, Rest* rest) {
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
  // The victim stands still, whatever happens to the walk, until it is released: since it answered,
  // which on a full machine is long before this thread comes to see it. One that runs on loses
  // nothing by that.
  const uint64_t halted_ns =
      options_.mode == SamplingMode::separate_thread ? answer.given_ns : monotonic_ns();
  const InterruptedCall call = interrupted_call(*answer.context);
  const bool is_walked = walk_answer(thread, answer, call.waiting, slot);
  // Released, it may leave and be entered again, which begins its record anew.
  *rest = rest_after(thread, call, halted_ns);
  hand_over_.release(number);
  return is_walked;
}

bool Sampler::walk_answer(SampledThread& thread, const HandOver::Answer& answer, bool waiting,
                          WalkSlot& slot) {
  // It may have left since it was asked, and be just about to be entered again.
  if (thread.phase.load(std::memory_order_acquire) != SampledThread::Phase::live) {
    thread.lose(LostCause::thread_exiting);
    return false;
  }
  if (answer.java_thread != thread.java_thread) {
    thread.lose(LostCause::not_java);
    return false;
  }
  WalkRequest request = request_for(thread, *answer.context);
  request.target.same_thread = false;
  slot.walk(request);
  count_sample(thread, waiting);
  slot.copy_window();
  return true;
}

}  // namespace framestorm::stress
