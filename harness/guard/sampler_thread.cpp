#include "harness/guard/sampler_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <utility>

#include "harness/base/clock.h"
#include "harness/guard/thread_table.h"
#include "harness/guard/walk_state.h"
#include "harness/guard/watchdog.h"

namespace framestorm::sampler {
namespace {

// Of the held thread.
enum class Stage : uint8_t {
  away,      // not held yet
  held,      // between samples
  asked,     // goes through the threads for the one to walk
  stopping,  // waits until that one has stopped
  walking,
  storing,  // has let it go on, or was told not to wait
  lost      // has met what it does not survive
};

// Long against what a sample takes; what lasts longer waits for a lock.
constexpr uint64_t kPatienceNs = 100'000'000;
// The same, of one that has been waited for.
constexpr uint64_t kShortPatienceNs = 20'000'000;
constexpr uint64_t kHoldPatienceNs = 2 * kSecond;
// Short against what a walk may take before it is taken for hung.
constexpr uint64_t kLookPeriodNs = 10'000'000;

constinit std::atomic<uint32_t> stage{static_cast<uint32_t>(Stage::away)};  // futex word
constinit std::atomic<int> looked_for{0};                                   // the signal
constinit std::atomic<bool> found{false};
constinit std::atomic<bool> holds{false};
constinit std::atomic<int> held_tid{0};
constinit Survive survive_in_use = nullptr;

// Of the walk that the held thread is asked for. Written before it is asked.
struct Request {
  bool is_wanted = false;
  pthread_t thread = {};
  bool guarded = false;
  FaultRecord* fault = nullptr;
  UnsafeCalls* unsafe = nullptr;
  ContainedFaults* contained = nullptr;
};
constinit Request request;

// Of the held thread outside the walk: what it does there is its own affair unless it ends it.
FaultRecord other_fault;
UnsafeCalls other_unsafe;
ContainedFaults other_contained;

// What made it lost.
constinit WalkEnd lost_end = WalkEnd::returned;
constinit const FaultRecord* lost_fault = nullptr;

struct ThisThread {
  bool sends = false;  // the signal that is looked for
  bool is_held = false;
  bool is_walked = false;  // in `handler`
  bool no_answer = false;  // the thread it has just sent the signal to does not get it
  uintptr_t stack_top = 0;
};
constinit thread_local ThisThread this_thread __attribute__((tls_model("initial-exec")));

Stage now() { return static_cast<Stage>(stage.load(std::memory_order_acquire)); }

void wake() { syscall(SYS_futex, &stage, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

void set(Stage next) {
  stage.store(static_cast<uint32_t>(next), std::memory_order_release);
  wake();
}

bool change(Stage from, Stage to) {
  auto expected = static_cast<uint32_t>(from);
  if (!stage.compare_exchange_strong(expected, static_cast<uint32_t>(to))) return false;
  wake();
  return true;
}

// Waits while the stage is that, for a time.
void wait_while(Stage same, uint64_t ns) {
  const timespec time = as_timespec(ns);
  syscall(SYS_futex, &stage, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(same), &time, nullptr, 0);
}

// Until the stage is one that `done` takes; false when that takes longer than `ns`.
template <typename Done>
bool wait_until(uint64_t ns, Done done) {
  const uint64_t deadline = monotonic_ns() + ns;
  for (Stage seen = now(); !done(seen); seen = now()) {
    const uint64_t time = monotonic_ns();
    if (time >= deadline) return false;
    wait_while(seen, deadline - time);
  }
  return true;
}

// --- the held thread

uintptr_t own_stack_top() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return UINTPTR_MAX;
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(low) + size;
}

// From here on the guard contains what happens on this thread.
void arm(FaultRecord* fault, UnsafeCalls* unsafe, ContainedFaults* contained) {
  if (!request.guarded) return;
  WalkState& walk = walk_state;
  fault->end = WalkEnd::returned;
  walk.fault = fault;
  walk.unsafe = unsafe;
  walk.contained = contained;
  walk.reports = nullptr;
  walk.locks_held = 0;
  walk.recovery.sp = this_thread.stack_top;
}

void arm_aside() {
  other_unsafe.count = kMaxUnsafeCalls;  // none is kept
  other_contained = {};
  arm(&other_fault, &other_unsafe, &other_contained);
}

void disarm() {
  walk_state.recovery.sp = 0;
  walk_state.mask_changed = false;
}

void set_watched(bool watched) {
  std::atomic<uint64_t>& sequence = walk_state.slot->sequence;
  const uint64_t was = sequence.load(std::memory_order_relaxed);
  if ((was % 2 != 0) != watched) sequence.store(was + 1, std::memory_order_relaxed);
}

void begin_walk() {
  arm(request.fault, request.unsafe, request.contained);
  set_watched(true);
  set(Stage::walking);
}

void end_walk() {
  set_watched(false);
  disarm();
  if (request.guarded && request.contained != nullptr && request.contained->count > 0) {
    request.contained->finish(walk_state.locks_held);
  }
  arm_aside();
}

void pause_held() {
  if (!this_thread.is_held) {
    this_thread.is_held = true;
    this_thread.stack_top = own_stack_top();
    if (walk_state.slot == nullptr) walk_state.slot = watchdog::claim_slot();
    walk_state.for_other = true;
    held_tid.store(gettid(), std::memory_order_release);
  }
  disarm();
  set(Stage::held);
  while (now() == Stage::held) wait_while(Stage::held, kSecond);
  arm_aside();
}

// In place of sending the signal.
void signal_held(pthread_t thread) {
  const bool is_wanted = request.is_wanted && pthread_equal(thread, request.thread) != 0;
  if (is_wanted && change(Stage::asked, Stage::stopping)) return;
  if (is_wanted && now() == Stage::walking) {
    end_walk();
    set(Stage::storing);
    return;
  }
  this_thread.no_answer = true;
}

// --- the walked thread

// It waits for another one, which is watched itself.
void stay_unwatched() {
  if (walk_state.recovery.sp != 0) walk_state.slot->sequence.fetch_add(2);
}

void wait_to_go_on() {
  for (Stage seen = now(); seen == Stage::stopping || seen == Stage::walking; seen = now()) {
    wait_while(seen, kLookPeriodNs);
    stay_unwatched();
  }
}

// The walk ends as it did on the other thread.
void end_if_lost() {
  if (now() != Stage::lost || walk_state.recovery.sp == 0) return;
  if (lost_fault != walk_state.fault) *walk_state.fault = *lost_fault;
  arch::framestorm_resume(&walk_state.recovery, static_cast<int>(lost_end));
}

bool is_at_rest(Stage seen) { return seen == Stage::held || seen == Stage::lost; }

// Nobody's walk unless it says whose.
bool ask(const Request& next, uint64_t patience_ns) {
  request = next;
  set(Stage::asked);
  if (wait_until(patience_ns, [](Stage seen) { return seen != Stage::asked; })) return true;
  return !change(Stage::asked, Stage::storing);
}

}  // namespace

void look_for(int signo) { looked_for.store(signo, std::memory_order_release); }

bool is_found() { return found.load(std::memory_order_acquire); }

bool hold(Survive survive) {
  survive_in_use = survive;
  holds.store(true, std::memory_order_release);
  return wait_until(kHoldPatienceNs, is_at_rest);
}

int held_thread() { return held_tid.load(std::memory_order_acquire); }

bool rests() { return held_thread() == 0 || is_at_rest(now()); }

bool is_ready() {
  if (held_thread() == 0 || now() == Stage::lost) return true;
  return wait_until(kShortPatienceNs, is_at_rest) && ask({}, kShortPatienceNs) &&
         wait_until(kShortPatienceNs, is_at_rest);
}

bool is_this_thread() { return this_thread.is_held; }

namespace {

Answer ask_and_answer(signals::Handler handler, int signo, siginfo_t* info, void* context) {
  const bool rests = wait_until(kShortPatienceNs, is_at_rest);
  end_if_lost();
  WalkState& walk = walk_state;
  walk.by_other = walk.recovery.sp != 0;
  if (!rests || !ask({.is_wanted = true,
                      .thread = pthread_self(),
                      .guarded = walk.by_other,
                      .fault = walk.fault,
                      .unsafe = walk.unsafe,
                      .contained = walk.contained},
                     kPatienceNs)) {
    return Answer::late;
  }
  end_if_lost();
  if (now() == Stage::held) return Answer::passed_over;
  this_thread.is_walked = true;
  handler(signo, info, context);
  this_thread.is_walked = false;
  // A handler that did not stop.
  change(Stage::stopping, Stage::storing);
  wait_until(kPatienceNs, is_at_rest);
  end_if_lost();
  return Answer::walked;
}

}  // namespace

Answer walk(signals::Handler handler, int signo, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const Answer answer = ask_and_answer(handler, signo, info, context);
  errno = saved_errno;
  return answer;
}

int wait_held(sem_t* semaphore, int (*real)(sem_t*, const timespec*)) {
  const bool stops = now() == Stage::stopping;
  if (std::exchange(this_thread.no_answer, false)) {
    errno = ETIMEDOUT;
    return -1;
  }
  for (;;) {
    const timespec until = as_timespec(read_clock(CLOCK_REALTIME) + kLookPeriodNs);
    if (real(semaphore, &until) == 0) break;
    if (stops && now() != Stage::stopping) return -1;
  }
  if (stops) begin_walk();
  return 0;
}

bool survives(int signo, siginfo_t* info, void* context) {
  if (survive_in_use == nullptr) return false;
  const uintptr_t armed = std::exchange(walk_state.recovery.sp, 0);
  const bool goes_on = survive_in_use(signo, info, context);
  walk_state.recovery.sp = armed;
  return goes_on;
}

void give_up(WalkEnd end) {
  set_watched(false);
  disarm();
  lost_end = end;
  lost_fault = walk_state.fault;
  set(Stage::lost);
  for (;;) pause();
}

namespace {

using PthreadKill = int(pthread_t, int);
// Before the first call of it.
PthreadKill* const kRealPthreadKill =
    reinterpret_cast<PthreadKill*>(dlsym(RTLD_NEXT, "pthread_kill"));

}  // namespace

}  // namespace framestorm::sampler

extern "C" {

[[gnu::visibility("default")]] int pthread_kill(pthread_t thread, int signo) noexcept {
  using namespace framestorm::sampler;
  if (signo != 0 && signo == looked_for.load(std::memory_order_acquire)) {
    this_thread.sends = true;
    if (this_thread.is_held) {
      signal_held(thread);
      return 0;
    }
  }
  return kRealPthreadKill(thread, signo);
}

[[gnu::visibility("default")]] int sigsuspend(const sigset_t* mask) {
  using namespace framestorm::sampler;
  constexpr size_t kSignalSetBytes = 8;
  if (this_thread.is_walked) {
    wait_to_go_on();
    end_if_lost();
    errno = EINTR;
    return -1;
  }
  if (looked_for.load(std::memory_order_acquire) != 0) found.store(true);
  return static_cast<int>(syscall(SYS_rt_sigsuspend, mask, kSignalSetBytes));
}

[[gnu::visibility("default")]] int nanosleep(const timespec* time, timespec* left) {
  using namespace framestorm::sampler;
  if (this_thread.sends && holds.load(std::memory_order_acquire)) {
    pause_held();
    return 0;
  }
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, time, left);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
}
