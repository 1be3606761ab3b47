#include "stress/agent/outside_sampler.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace framestorm::stress {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20);

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

OutsideSampler* active = nullptr;

}  // namespace

OutsideSampler::OutsideSampler(const Options& options, Jvm& jvm, WalkSetup setup)
    : Sampler(options, jvm, std::move(setup)) {
  active = this;
  install_handler(halt_signal(), &OutsideSampler::handle);
}

void OutsideSampler::start_own_thread() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "fs-sampler");
    go_ahead();
    prepare_own_thread();
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

void OutsideSampler::prepare_own_thread() {
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

}  // namespace framestorm::stress
