#include "harness/victim/world.h"

#include <dirent.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/guard/signal_table.h"
#include "harness/guard/unsafe_calls.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

// Neither the kernel sends it, nor HotSpot or profilers use it: those have SIGPROF and SIGVTALRM.
constexpr int kHaltSignal = SIGSTKFLT;

// Timers send another one: a standard signal that is pending swallows the next of its kind, and the
// kernel drops a pending signal together with its timer - a halt asked for then would get lost.
int timer_signal() { return SIGRTMAX - 6; }

// A thread that has not reacted to its halt signal after this time has the signal blocked or is
// stuck in the kernel; running threads react within a scheduling delay.
constexpr uint64_t kHaltPatienceNs = 3'000'000'000;

// Whether a thread sleeps with the halt signal blocked, as HotSpot's signal handlers do when they
// wait for a lock. Who holds it may be halted already.
bool sleeps_unreachable(int tid) {
  const ThreadStatus status = status_of(tid);
  return status.sleeps && (status.blocked_signals >> (kHaltSignal - 1) & 1U) != 0;
}

// Sends the halt signal to one thread, again and again; for World::halt_after.
class HaltTimer {
 public:
  HaltTimer(int tid, int64_t period_ns) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event._sigev_un._tid = tid;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return;
    created_ = true;
    const itimerspec period = {{0, period_ns}, {0, period_ns}};
    timer_settime(timer_, 0, &period, nullptr);
  }
  ~HaltTimer() {
    if (created_) timer_delete(timer_);
  }
  HaltTimer(const HaltTimer&) = delete;
  HaltTimer& operator=(const HaltTimer&) = delete;
  bool created() const { return created_; }

 private:
  timer_t timer_ = nullptr;
  bool created_ = false;
};

void futex_wait(std::atomic<uint32_t>* word, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

std::vector<int> process_threads() {
  std::vector<int> tids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), &closedir);
  if (folder == nullptr) throw std::system_error(errno, std::generic_category(), "/proc/self/task");
  while (const dirent* entry = readdir(folder.get())) {
    if (const int tid = std::atoi(entry->d_name); tid > 0) tids.push_back(tid);
  }
  return tids;
}

thread_local uintptr_t this_frames_top = 0;
std::atomic<void (*)()> start_action{nullptr};

// First on every thread: the start routine is called from where this is called from.
[[gnu::noinline]] void on_thread_start(void* (*)(void*), void*) {
  this_frames_top = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 2 * sizeof(void*);
  if (const auto action = start_action.load(std::memory_order_acquire)) action();
}

}  // namespace

ThreadStatus status_of(int tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/status");
  ThreadStatus status;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("State:")) status.sleeps = line.find('S', 6) != std::string::npos;
    if (line.starts_with("SigBlk:")) {
      status.blocked_signals = std::stoull(line.substr(7), nullptr, 16);
    }
  }
  return status;
}

void World::watch_threads() {
  interposer::set_thread_start_hook(&on_thread_start);
  interposer::set_thread_end_hook(&World::on_thread_end);
}

// On the ending thread. It may wait in glibc for a lock that a halted thread holds: nobody must
// wait for it, and no step trap may come once glibc has blocked SIGTRAP.
void World::on_thread_end() {
  ThreadSlot* slot = get().claim(gettid());
  if (slot == nullptr) return;
  slot->stepping = false;
  slot->phase.store(ThreadPhase::ended, std::memory_order_release);
}

void World::set_start_action(void (*action)()) { start_action.store(action); }

World& World::get() {
  static World world;
  return world;
}

void World::install(void* (*current_vm_thread)(), void (*host)(ThreadSlot*)) {
  current_vm_thread_ = current_vm_thread;
  host_ = host;
  // None of them inside another: the step handler parks a thread itself.
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, kHaltSignal);
  sigaddset(&mask, timer_signal());
  signals::own(kHaltSignal, &World::on_halt_signal, SA_RESTART, mask);
  signals::own(timer_signal(), &World::on_halt_signal, SA_RESTART, mask);
  // A walk of a thread that was stepped may trap: blocked, that would end the process.
  signals::own(SIGTRAP, &World::on_step_signal, SA_RESTART | SA_NODEFER, mask);
}

ThreadSlot* World::find(int tid) {
  const auto start = static_cast<size_t>(tid) % kMaxThreads;
  for (size_t i = 0; i < kMaxThreads; ++i) {
    ThreadSlot& slot = slots_[(start + i) % kMaxThreads];
    if (slot.tid.load(std::memory_order_acquire) == tid) return &slot;
  }
  return nullptr;
}

ThreadSlot* World::claim(int tid) {
  if (ThreadSlot* slot = find(tid)) return slot;
  // The control thread and the thread itself may claim at once. Both take the first free slot in
  // the same order, and only the control thread ever frees one, so the one who comes second finds
  // the other's tid where it wanted to write its own. A free slot is ready for use: nothing is set
  // after the claim.
  const auto start = static_cast<size_t>(tid) % kMaxThreads;
  for (size_t i = 0; i < kMaxThreads; ++i) {
    ThreadSlot& slot = slots_[(start + i) % kMaxThreads];
    int expected = 0;
    if (slot.tid.compare_exchange_strong(expected, tid) || expected == tid) return &slot;
  }
  return nullptr;
}

// Control thread; the thread is gone.
void World::free_slot(ThreadSlot* slot) {
  slot->stepping = false;
  slot->goal_met = false;
  slot->context = nullptr;
  slot->vm_thread = nullptr;
  slot->frames_top = 0;
  slot->not_before_ns.store(0);
  slot->command.store(kCommandNone);
  slot->phase.store(ThreadPhase::running);
  slot->tid.store(0, std::memory_order_release);
}

void World::send(ThreadSlot* slot, uint32_t command) {
  slot->command.store(command, std::memory_order_release);
  futex_wake(&slot->command);
}

uint32_t World::await(ThreadSlot* slot) {
  for (;;) {
    const uint32_t command = slot->command.exchange(kCommandNone, std::memory_order_acquire);
    if (command != kCommandNone) return command;
    futex_wait(&slot->command, kCommandNone, nullptr);
  }
}

// Signal context.
void World::park(ThreadSlot* slot, ucontext_t* context, bool asked) {
  slot->context = context;
  slot->vm_thread = current_vm_thread_();
  slot->frames_top = this_frames_top;
  slot->parks.fetch_add(1, std::memory_order_relaxed);
  ThreadPhase expected = ThreadPhase::asked;
  if (!asked) {
    slot->phase.store(ThreadPhase::parked, std::memory_order_release);
  } else if (!slot->phase.compare_exchange_strong(expected, ThreadPhase::parked)) {
    // Given up meanwhile: nobody would release it.
    slot->parks.fetch_sub(1, std::memory_order_relaxed);
    slot->context = nullptr;
    return;
  }
  parked_changes_.fetch_add(1, std::memory_order_release);
  futex_wake(&parked_changes_);
  while (await(slot) == kCommandHost) host_(slot);
  // Its phase is the control thread's to change: see release().
  slot->context = nullptr;
}

// On a thread that had to be left alone in the allocator.
void World::on_allocator_left() {
  ThreadSlot* slot = get().find(gettid());
  if (slot == nullptr) return;
  if (slot->phase.load(std::memory_order_acquire) == ThreadPhase::asked) {
    syscall(SYS_tgkill, getpid(), gettid(), kHaltSignal);
  } else if (slot->stepping) {
    start_single_step();
  }
}

// Signal context.
void World::on_halt_signal(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  World& world = get();
  ThreadSlot* slot = world.find(gettid());
  // A late signal of a halt that is over finds another phase.
  if (slot != nullptr && slot->phase.load(std::memory_order_acquire) == ThreadPhase::asked) {
    const uint64_t not_before = slot->not_before_ns.load(std::memory_order_acquire);
    if (not_before != 0 && own_cpu_ns() < not_before) {
      // The timer comes again.
    } else if (interposer::in_allocator()) {
      interposer::on_allocator_exit(&World::on_allocator_left);
    } else {
      world.park(slot, static_cast<ucontext_t*>(context), true);
    }
  }
  errno = saved_errno;
}

// Signal context.
void World::on_step_signal(int signo, siginfo_t* info, void* raw_context) {
  const int saved_errno = errno;
  auto* context = static_cast<ucontext_t*>(raw_context);
  World& world = get();
  ThreadSlot* slot = world.find(gettid());
  const bool single_step = is_single_step(*info, *context);
  // A call that runs at full speed may end after the stepping has.
  const bool observed =
      slot != nullptr && slot->goal.observe != nullptr && (slot->stepping || !single_step);
  if (observed && !(single_step && interposer::in_allocator())) {
    const StepAnswer answer = slot->goal.observe(context, single_step);
    if (answer == StepAnswer::end) slot->stepping = false;
    if (answer != StepAnswer::not_mine) {
      set_single_step(context, answer == StepAnswer::go_on);
      errno = saved_errno;
      return;
    }
  }
  if (!single_step) {
    signals::forward(signo, info, raw_context);  // somebody's breakpoint
    return;
  }
  if (slot == nullptr || !slot->stepping) {
    // The trap flag was inherited through clone, or the goal was given up.
    set_single_step(context, false);
    errno = saved_errno;
    return;
  }
  if (interposer::in_allocator()) {
    // It cannot be parked here, and clearing a megabyte may be a million steps.
    set_single_step(context, false);
    interposer::on_allocator_exit(&World::on_allocator_left);
    errno = saved_errno;
    return;
  }
  StepGoal& goal = slot->goal;
  if (goal.steps > 0) --goal.steps;
  const uintptr_t pc = get_register(*context, Register::pc);
  const bool there = goal.pc != 0 && pc == goal.pc &&
                     (goal.sp == 0 || is_as_deep(get_register(*context, Register::sp), goal.sp));
  const bool has_left = !goal.stay_in.empty() && !goal.stay_in.has(pc);
  if (there || has_left || goal.steps == 0) {
    slot->stepping = false;
    slot->goal_met = there || goal.pc == 0;
    set_single_step(context, false);
    world.park(slot, context, false);
  }
  // The thread may have restored flags that it saved before it was stepped, as HotSpot's stubs of safepoints do.
  set_single_step(context, slot->stepping);
  errno = saved_errno;
}

bool World::ask(ThreadSlot* slot) {
  ThreadPhase expected = ThreadPhase::running;
  if (!slot->phase.compare_exchange_strong(expected, ThreadPhase::asked)) {
    return expected == ThreadPhase::parked || expected == ThreadPhase::asked;
  }
  if (syscall(SYS_tgkill, getpid(), slot->tid.load(), kHaltSignal) != 0) {
    free_slot(slot);
    return false;
  }
  return true;
}

ThreadSlot* World::wait_parked(int tid, int timeout_ms) {
  const uint64_t deadline = monotonic_ns() + static_cast<uint64_t>(timeout_ms) * 1'000'000;
  for (;;) {
    const uint32_t changes = parked_changes_.load(std::memory_order_acquire);
    ThreadSlot* slot = find(tid);
    if (slot != nullptr && slot->phase.load(std::memory_order_acquire) == ThreadPhase::parked) {
      return slot;
    }
    if (monotonic_ns() > deadline) return nullptr;
    const timespec slice = {0, 2'000'000};
    futex_wait(&parked_changes_, changes, &slice);
  }
}

bool World::halt_after(int tid, uint64_t cpu_ns) {
  // Short against the CPU time asked for, long against a signal's cost.
  constexpr int64_t kPeriodNs = 50'000;
  constexpr int kPatienceMs = 100;
  ThreadSlot* slot = claim(tid);
  if (slot == nullptr) return false;
  slot->not_before_ns.store(thread_cpu_ns(tid) + cpu_ns);
  ThreadPhase expected = ThreadPhase::running;
  if (!slot->phase.compare_exchange_strong(expected, ThreadPhase::asked)) {
    slot->not_before_ns.store(0);
    return expected == ThreadPhase::parked;
  }
  bool parked = false;
  {
    const HaltTimer timer(tid, kPeriodNs);
    parked = timer.created() && wait_parked(tid, kPatienceMs) != nullptr;
  }
  slot->not_before_ns.store(0);
  if (parked) return true;
  syscall(SYS_tgkill, getpid(), tid, kHaltSignal);
  return wait_asked(slot);
}

bool World::halt(int tid) {
  ThreadSlot* slot = claim(tid);
  return slot != nullptr && ask(slot) && wait_asked(slot);
}

bool World::wait_asked(ThreadSlot* slot) {
  const auto patience_ms = static_cast<int>(kHaltPatienceNs / 1'000'000);
  return wait_parked(slot->tid.load(), patience_ms) != nullptr || !give_up(slot);
}

bool World::give_up(ThreadSlot* slot) {
  ThreadPhase expected = ThreadPhase::asked;
  return slot->phase.compare_exchange_strong(expected, ThreadPhase::running) ||
         expected != ThreadPhase::parked;
}

HaltReport World::halt_all(const std::vector<int>& exempt) {
  const int self = gettid();
  HaltReport report;
  std::vector<int> previous;
  // Long against what a thread sleeps when nobody is halted.
  constexpr uint64_t kLookPeriodNs = 100'000'000;
  const uint64_t deadline = monotonic_ns() + kHaltPatienceNs;
  uint64_t next_look = monotonic_ns() + kLookPeriodNs;
  for (;;) {
    report.halted = 0;
    report.refused.clear();
    const uint32_t changes = parked_changes_.load(std::memory_order_acquire);
    std::vector<int> tids = process_threads();
    for (const int tid : tids) {
      if (tid == self || std::ranges::find(exempt, tid) != exempt.end()) continue;
      ThreadSlot* slot = claim(tid);
      if (slot == nullptr) {
        report.refused.push_back(tid);  // more threads than slots: the world cannot be halted
        continue;
      }
      if (!ask(slot)) continue;
      if (slot->phase.load(std::memory_order_acquire) == ThreadPhase::parked) {
        ++report.halted;
      } else {
        report.refused.push_back(tid);
      }
    }
    // Threads may start others until they are halted, and the kernel's list can leave out a live
    // thread while another one ends: only a list that came twice is the whole.
    std::ranges::sort(tids);
    const bool whole = tids == previous;
    previous = std::move(tids);
    if (report.refused.empty() && whole) break;
    if (monotonic_ns() > deadline) return report;
    if (report.refused.empty()) continue;
    if (monotonic_ns() > next_look) {
      next_look = monotonic_ns() + kLookPeriodNs;
      report.deadlocked = std::ranges::all_of(report.refused, sleeps_unreachable);
      if (report.deadlocked) return report;
    }
    const timespec slice = {0, 1'000'000};
    futex_wait(&parked_changes_, changes, &slice);
  }
  forget_ended();
  return report;
}

void World::forget_ended() {
  for (ThreadSlot& slot : slots_) {
    const int tid = slot.tid.load();
    if (tid != 0 && slot.phase.load() != ThreadPhase::parked &&
        syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH) {
      free_slot(&slot);
    }
  }
}

void World::release(ThreadSlot* slot) {
  ThreadPhase expected = ThreadPhase::parked;
  // Running from here on, although it may not have left its handler yet: a halt that follows at
  // once waits for its next one, because the signal stays pending until the handler returns.
  if (!slot->phase.compare_exchange_strong(expected, ThreadPhase::running)) return;
  send(slot, kCommandRelease);
}

void World::release_all() {
  for (ThreadSlot& slot : slots_) {
    release(&slot);
    // Who did not get to halting is not to do so any more. One that parks just now is let go, too.
    if (!give_up(&slot)) release(&slot);
  }
}

void World::release_stepping(ThreadSlot* slot, const StepGoal& goal) {
  slot->goal = goal;
  slot->goal_met = false;
  slot->stepping = true;
  set_single_step(slot->context, true);
  release(slot);
}

bool World::step(ThreadSlot* slot, const StepGoal& goal) {
  const int tid = slot->tid.load();
  release_stepping(slot, goal);
  // A step costs a signal delivery; time is allowed by the number of steps, generously.
  const int timeout_ms = 1000 + static_cast<int>(goal.steps / 50);
  if (ThreadSlot* parked = wait_parked(tid, timeout_ms)) return parked->goal_met;
  slot->stepping = false;
  halt(tid);
  return false;
}

void World::end_step(int tid) {
  if (ThreadSlot* slot = find(tid)) slot->stepping = false;
}

void World::step_self(const StepGoal& goal) {
  ThreadSlot* slot = claim(gettid());
  if (slot == nullptr) return;
  slot->goal = goal;
  slot->goal_met = false;
  slot->stepping = true;
  start_single_step();
}

}  // namespace framestorm
