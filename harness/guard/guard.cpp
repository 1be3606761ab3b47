#include "harness/guard/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/guard/arch.h"
#include "harness/guard/sampler_thread.h"
#include "harness/guard/signal_table.h"
#include "harness/guard/thread_table.h"
#include "harness/guard/unsafe_calls_record.h"
#include "harness/guard/walk_state.h"
#include "harness/guard/watchdog.h"
#include "harness/guard/write_watch.h"

namespace framestorm {

namespace {

// glibc aborts without passing the interposed abort when free finds a broken heap.
constexpr std::array kHandledSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr uint32_t kMaxNestedClaims = 4;
constexpr size_t kPage = 4096;
// Room for a signal frame with AVX-512 state and for HotSpot's own handler, which a forwarded fault
// runs on the same stack. The lowest page is a guard page.
constexpr size_t kSignalStack = size_t{128} * 1024;

constinit HotSpotHooks hooks_in_use;
constinit std::array<int, 1> watchdog_thread{};
constinit std::atomic<bool> installed{false};

struct SignalStack {
  alignas(kPage) std::array<std::byte, kSignalStack> memory;
};
constinit std::array<SignalStack, Guard::kMaxAttached> signal_stacks{};
constinit std::array<stack_t, Guard::kMaxAttached> replaced_stacks{};
constinit ThreadTable<Guard::kMaxAttached> attached_threads;
constinit std::atomic<bool> one_stack{false};

// Where walkers contained faults, and how often; the last count is of all other places.
constexpr size_t kContainedPlaces = 64;
constinit std::array<std::atomic<uintptr_t>, kContainedPlaces> contained_places{};
constinit std::array<std::atomic<uint64_t>, kContainedPlaces + 1> contained_counts{};
// Where faults were that HotSpot claimed and continued from: SafeFetch's few loads.
constinit std::array<std::atomic<uintptr_t>, 16> claimed_places{};

// --- outside a walk ---

// To the owner of the signal before, as the kernel would have called it.
void forward(int signo, siginfo_t* info, void* context) {
  const uint64_t begin = own_cpu_ns();
  signals::forward(signo, info, context);
  walk_state.forwarded_ns += own_cpu_ns() - begin;
}

// --- inside a walk ---

struct ClaimRequest {
  int signo = 0;
  siginfo_t* info = nullptr;
  ucontext_t* context = nullptr;
  bool claimed = false;
};

void run_claim(void* request_pointer) {
  auto* request = static_cast<ClaimRequest*>(request_pointer);
  request->claimed = hooks_in_use.claim(request->signo, request->info, request->context);
}

bool is_claimed_place(uintptr_t pc) {
  return std::ranges::any_of(claimed_places, [pc](const std::atomic<uintptr_t>& place) {
    return place.load(std::memory_order_relaxed) == pc;
  });
}

// One of the places that is pc, or that nobody has had and now is; null when all are others.
std::atomic<uintptr_t>* claim_place(std::span<std::atomic<uintptr_t>> places, uintptr_t pc) {
  for (std::atomic<uintptr_t>& place : places) {
    uintptr_t known = place.load(std::memory_order_relaxed);
    if (known == pc || (known == 0 && (place.compare_exchange_strong(known, pc) || known == pc))) {
      return &place;
    }
  }
  return nullptr;
}

// Whether HotSpot has left its handling of a fault by a longjmp into the walk. Otherwise it runs
// below the claim's frame, on the same stack.
bool has_left_claim(const WalkState& walk, const ucontext_t* context) {
  return walk.claim.sp - arch::sp_of(context) - 1 >= kSignalStack;
}

// Asks HotSpot, contained itself: what faults or aborts in there is a refusal. HotSpot may also
// contain a fault of its walk itself, and not return from here: the fault is then on record.
bool is_claimed(WalkState* walk, int signo, siginfo_t* info, ucontext_t* context) {
  if (hooks_in_use.claim == nullptr) {
    return false;
  }
  gregset_t registers;
  std::memcpy(registers, context->uc_mcontext.gregs, sizeof(registers));
  ClaimRequest request{signo, info, context, false};
  const uintptr_t pc = arch::pc_of(context);
  const bool may_be_contained = !is_claimed_place(pc);
  if (may_be_contained) {
    walk->recording = true;
    record_interrupted(walk, WalkEnd::fault, signo, info, context);
    walk->recording = false;
  }
  const int abandoned = arch::framestorm_run_recoverable(&walk->claim, run_claim, &request);
  walk->nested_claims = 0;
  if (abandoned == 0 && request.claimed) {
    walk->fault->end = WalkEnd::returned;
    if (may_be_contained) claim_place(claimed_places, pc);
    return true;
  }
  std::memcpy(context->uc_mcontext.gregs, registers, sizeof(registers));
  return false;
}

void end_walk(WalkState* walk, WalkEnd end, int signo, const siginfo_t* info, ucontext_t* context) {
  walk->recording = true;
  record_interrupted(walk, end, signo, info, context);
  if (walk->for_other) {
    walk->recording = false;
    sampler::give_up(end);
  }
  arch::resume_from_handler(context, &walk->recovery, static_cast<int>(end));
}

// Counts by place the faults that walkers contained.
void count_contained(uintptr_t pc, uint64_t change) {
  const std::atomic<uintptr_t>* const place = claim_place(contained_places, pc);
  const ptrdiff_t index =
      place == nullptr ? ptrdiff_t{kContainedPlaces} : place - contained_places.data();
  contained_counts[static_cast<size_t>(index)].fetch_add(change, std::memory_order_relaxed);
}

// Before somebody is asked who goes on by a jump, if he contains the fault.
void take_for_contained(ContainedFaults* contained, const ucontext_t* context) {
  if (contained->count++ == 0) {
    std::memcpy(&contained->mask_before, &context->uc_sigmask, sizeof(contained->mask_before));
  }
  count_contained(arch::pc_of(context), 1);
}

void take_back_contained(ContainedFaults* contained, uintptr_t pc) {
  --contained->count;
  count_contained(pc, ~uint64_t{0});
}

// A walker that contains its faults gets each one first, as under HotSpot: on the walked thread's
// stack, with HotSpot's handler behind its own. It may not return from here, and goes on by a jump;
// or it passes the fault on, to signals::stand_for_jvm.
void give_to_walker(WalkState* walk, int signo, siginfo_t* info, ucontext_t* context) {
  take_for_contained(walk->contained, context);
  signals::forward(signo, info, context);
}

// On the thread of a profiler that is part of the JVM, which contains its faults with the others.
bool is_survived(WalkState* walk, int signo, siginfo_t* info, ucontext_t* context) {
  const uintptr_t pc = arch::pc_of(context);
  take_for_contained(walk->contained, context);
  const bool goes_on = sampler::survives(signo, info, context);
  take_back_contained(walk->contained, pc);
  return goes_on;
}

// Of a walk whose walker does not contain the fault: HotSpot's by SafeFetch, or its end.
void contain(WalkState* walk, int signo, siginfo_t* info, ucontext_t* context) {
  if (walk->claim.sp != 0 && has_left_claim(*walk, context)) {
    walk->claim.sp = 0;
    walk->nested_claims = 0;
  }
  if (walk->claim.sp != 0) {
    ++walk->nested_claims;
    const bool claimed =
        walk->nested_claims <= kMaxNestedClaims && hooks_in_use.claim(signo, info, context);
    if (claimed) {
      --walk->nested_claims;
    } else {
      arch::resume_from_handler(context, &walk->claim, 1);
    }
    return;
  }
  if (signo == SIGABRT) {
    end_walk(walk, WalkEnd::terminal_call, signo, info, context);
  } else if (walk->for_other ? !is_survived(walk, signo, info, context)
                             : !is_claimed(walk, signo, info, context)) {
    end_walk(walk, WalkEnd::fault, signo, info, context);
  }
}

// Raised by the kernel for what the thread just did, or by the thread itself (raise).
bool is_own_fault(const siginfo_t* info) {
  return info->si_code > 0 || (info->si_code == SI_TKILL && info->si_pid == getpid());
}

void handle_fault(int signo, siginfo_t* info, void* context) {
  auto* interrupted = static_cast<ucontext_t*>(context);
  if (WriteWatch::takes(signo, info, interrupted) || arch::fix_up_safe_load(interrupted)) return;
  const int saved_errno = errno;
  WalkState& walk = walk_state;
  if (walk.recovery.sp != 0 && is_own_fault(info)) {
    const bool mask_changed = walk.mask_changed;
    if (walk.recording) {  // the guard's own fault: contained, it would come back for ever
      signals::take_default_action(signo, info);
    } else if (walk.contained != nullptr && walk.claim.sp == 0 && signals::is_behind_jvms(signo)) {
      give_to_walker(&walk, signo, info, interrupted);
    } else {
      contain(&walk, signo, info, interrupted);
    }
    // What was done to the mask in here the kernel undoes: HotSpot unblocks the signals of faults.
    walk.mask_changed = walk.unsafe->mask_changed = mask_changed;
  } else {
    forward(signo, info, context);
  }
  errno = saved_errno;
}

void handle_watchdog(int signo, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  WalkState& walk = walk_state;
  const bool hung = walk.recovery.sp != 0 && !walk.recording && walk.slot != nullptr &&
                    walk.slot->sequence.load(std::memory_order_relaxed) ==
                        walk.slot->interrupt.load(std::memory_order_acquire);
  if (hung) {
    end_walk(&walk, WalkEnd::hang, signo, info, static_cast<ucontext_t*>(context));
  }
  errno = saved_errno;
}

}  // namespace

void signals::stand_for_jvm(int signo, siginfo_t* info, void* context) {
  WalkState& walk = walk_state;
  if (walk.recovery.sp == 0 || walk.contained == nullptr || !is_own_fault(info)) {
    jvms_handler(signo)(signo, info, context);
    return;
  }
  auto* interrupted = static_cast<ucontext_t*>(context);
  take_back_contained(walk.contained, arch::pc_of(interrupted));
  contain(&walk, signo, info, interrupted);
}

void Guard::install(const HotSpotHooks& hooks, const GuardLimits& limits) {
  if (installed.exchange(true)) {
    throw std::system_error(EALREADY, std::generic_category(), "Guard::install: called twice");
  }
  hooks_in_use = hooks;
  sigset_t none;
  sigemptyset(&none);
  signals::own(watchdog::signal_number(), handle_watchdog, SA_ONSTACK | SA_RESTART, none);
  watchdog_thread[0] = watchdog::start(limits);
  for (const int signo : kHandledSignals) {
    signals::own(signo, handle_fault, SA_ONSTACK | SA_NODEFER, none);
  }
}

void ContainedFaults::finish(int32_t locks) {
  locks_held = static_cast<uint32_t>(std::max(locks, 0));
  mask_changed = signals::set_mask(mask_before) != mask_before;
}

std::vector<std::pair<uintptr_t, uint64_t>> Guard::contained_places() {
  std::vector<std::pair<uintptr_t, uint64_t>> places;
  for (size_t i = 0; i < contained_counts.size(); ++i) {
    const uint64_t count = contained_counts[i].load();
    if (count == 0) continue;
    places.emplace_back(i == kContainedPlaces ? 0 : framestorm::contained_places[i].load(), count);
  }
  std::ranges::sort(places, std::greater<>(), &std::pair<uintptr_t, uint64_t>::second);
  return places;
}

uint64_t Guard::forwarded_ns() { return walk_state.forwarded_ns; }

int Guard::watchdog_signal() { return watchdog::signal_number(); }

std::span<const int> Guard::own_threads() {
  return watchdog_thread[0] == 0 ? std::span<const int>{} : std::span<const int>{watchdog_thread};
}

void Guard::walk_on_one_stack() { one_stack.store(true, std::memory_order_release); }

bool Guard::attach_thread() {
  if (one_stack.load(std::memory_order_acquire)) return true;
  const size_t index = attached_threads.claim(gettid());
  if (index == ThreadTable<kMaxAttached>::kNone) {
    return false;
  }
  std::byte* memory = signal_stacks[index].memory.data();
  stack_t current{};
  sigaltstack(nullptr, &current);
  if (current.ss_sp == memory + kPage) {
    return true;
  }
  stack_t stack{};
  stack.ss_sp = memory + kPage;
  stack.ss_size = kSignalStack - kPage;
  if (mprotect(memory, kPage, PROT_NONE) != 0 || sigaltstack(&stack, nullptr) != 0) {
    attached_threads.release(index);
    return false;
  }
  replaced_stacks[index] = current;
  return true;
}

void Guard::detach_thread() {
  const size_t index = attached_threads.find(gettid());
  if (index == ThreadTable<kMaxAttached>::kNone) {
    return;
  }
  stack_t previous = replaced_stacks[index];
  previous.ss_flags &= SS_DISABLE;
  if (sigaltstack(&previous, nullptr) == 0) {
    attached_threads.release(index);
  }
}

Guard::Watch::Watch() : slot_(watchdog::reserve_slot()) {
  if (slot_ == nullptr) {
    throw std::system_error(EAGAIN, std::generic_category(), "reserving a watch of the guard");
  }
}

void Guard::Watch::take() {
  replaced_ = walk_state.slot;
  watchdog::lend_slot(slot_, gettid());
  walk_state.slot = slot_;
}

void Guard::Watch::give_back() {
  walk_state.slot = replaced_;
  watchdog::lend_slot(slot_, 0);
}

// noinline: the caller's loop may move to another thread between calls, and an address of
// thread-local state must not outlive the call it was computed in.
[[gnu::noinline]] WalkEnd Guard::call(void (*fn)(void*), void* arg, FaultRecord* fault,
                                      UnsafeCalls* unsafe, SanitizerReports* reports,
                                      ContainedFaults* contained) {
  WalkState& walk = walk_state;
  if (walk.recovery.sp != 0) {
    std::abort();  // nested: ends the outer walk as a terminal call that names this frame
  }
  if (walk.slot == nullptr) {
    walk.slot = watchdog::claim_slot();
  }
  const int saved_errno = errno;
  // A handler may have interrupted the allocator: that is not the walk's doing.
  const uint32_t saved_depth = walk.allocator_depth;
  walk.allocator_depth = 0;
  unsafe->count = unsafe->locks_held = 0;
  walk.fault = fault;
  walk.unsafe = unsafe;
  walk.reports = reports;
  walk.contained = contained;
  if (contained != nullptr) contained->count = contained->locks_held = 0;
  if (reports != nullptr) reports->count = 0;
  fault->end = WalkEnd::returned;
  walk.locks_held = 0;
  walk.mask_changed = false;
  walk.by_other = false;
  std::atomic<uint64_t>& sequence = walk.slot->sequence;
  const uint64_t before = sequence.load(std::memory_order_relaxed);
  sequence.store(before + 1, std::memory_order_relaxed);

  const auto end = static_cast<WalkEnd>(arch::framestorm_run_recoverable(&walk.recovery, fn, arg));

  sequence.store(before + 2, std::memory_order_relaxed);
  if (walk.mask_changed) [[unlikely]] {
    pthread_sigmask(SIG_SETMASK, &walk.original_mask, nullptr);
  }
  walk.claim.sp = 0;  // HotSpot may have left it
  if (contained != nullptr && contained->count > 0 && !walk.by_other) [[unlikely]] {
    contained->finish(end == WalkEnd::returned ? walk.locks_held : 0);
  }
  walk.allocator_depth = saved_depth;
  if (end != WalkEnd::returned) [[unlikely]] {
    walk.recording = false;
    walk.reporting = false;
    walk.nested_claims = 0;
    walk.libc_entry_frame = 0;
    AllocatorScope::run_exit_action();
    errno = saved_errno;
  } else {
    unsafe->locks_held = static_cast<uint32_t>(std::max(walk.locks_held, 0));
  }
  return end;
}

}  // namespace framestorm
