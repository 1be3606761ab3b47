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
#include <string>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/guard/arch.h"
#include "harness/guard/thread_table.h"
#include "harness/guard/unsafe_calls_record.h"
#include "harness/guard/walk_state.h"
#include "harness/guard/watchdog.h"

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
constinit std::array<struct sigaction, NSIG> previous_actions{};
constinit std::array<int, 1> watchdog_thread{};
constinit std::atomic<bool> installed{false};

struct SignalStack {
  alignas(kPage) std::array<std::byte, kSignalStack> memory;
};
constinit std::array<SignalStack, Guard::kMaxAttached> signal_stacks{};
constinit std::array<stack_t, Guard::kMaxAttached> replaced_stacks{};
constinit ThreadTable<Guard::kMaxAttached> attached_threads;
// Where faults were that HotSpot claimed and continued from: SafeFetch's few loads.
constinit std::array<std::atomic<uintptr_t>, 16> claimed_places{};

// --- outside a walk ---

void take_default_action(int signo, const siginfo_t* info) {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(signo, &action, nullptr);
  // A fault happens again when the handler returns and dies with its own context; a sent signal
  // does not.
  if (info->si_code <= 0) {
    syscall(SYS_tgkill, getpid(), current_tid(), signo);
  }
}

// As the kernel would have called the previous owner: its mask, its flags.
void forward(int signo, siginfo_t* info, void* context) {
  const struct sigaction previous = previous_actions[static_cast<size_t>(signo)];
  const bool has_siginfo = (previous.sa_flags & SA_SIGINFO) != 0;
  if (!has_siginfo && previous.sa_handler == SIG_IGN && info->si_code <= 0) {
    return;
  }
  if (!has_siginfo && (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN)) {
    take_default_action(signo, info);
    return;
  }
  if ((previous.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    previous_actions[static_cast<size_t>(signo)].sa_flags = 0;
    previous_actions[static_cast<size_t>(signo)].sa_handler = SIG_DFL;
  }
  sigset_t blocked = previous.sa_mask;
  if ((previous.sa_flags & SA_NODEFER) == 0) {
    sigaddset(&blocked, signo);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // undone when the front handler returns
  const uint64_t begin = own_cpu_ns();
  if (has_siginfo) {
    previous.sa_sigaction(signo, info, context);
  } else {
    previous.sa_handler(signo);
  }
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

void remember_claimed_place(uintptr_t pc) {
  for (std::atomic<uintptr_t>& place : claimed_places) {
    uintptr_t expected = 0;
    if (place.compare_exchange_strong(expected, pc) || expected == pc) return;
  }
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
    if (may_be_contained) remember_claimed_place(pc);
    return true;
  }
  std::memcpy(context->uc_mcontext.gregs, registers, sizeof(registers));
  return false;
}

void end_walk(WalkState* walk, WalkEnd end, int signo, const siginfo_t* info, ucontext_t* context) {
  walk->recording = true;
  record_interrupted(walk, end, signo, info, context);
  arch::resume_from_handler(context, &walk->recovery, static_cast<int>(end));
}

void contain(WalkState* walk, int signo, siginfo_t* info, ucontext_t* context) {
  if (walk->recording) {  // the guard's own fault: contained, it would come back for ever
    take_default_action(signo, info);
    return;
  }
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
  } else if (!is_claimed(walk, signo, info, context)) {
    end_walk(walk, WalkEnd::fault, signo, info, context);
  }
}

// Raised by the kernel for what the thread just did, or by the thread itself (raise).
bool is_own_fault(const siginfo_t* info) {
  return info->si_code > 0 || (info->si_code == SI_TKILL && info->si_pid == getpid());
}

void handle_fault(int signo, siginfo_t* info, void* context) {
  auto* interrupted = static_cast<ucontext_t*>(context);
  if (arch::fix_up_safe_load(interrupted)) {
    return;
  }
  const int saved_errno = errno;
  WalkState& walk = walk_state;
  if (walk.recovery.sp != 0 && is_own_fault(info)) {
    contain(&walk, signo, info, interrupted);
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

void install_handler(int signo, void (*handler)(int, siginfo_t*, void*), int flags,
                     struct sigaction* previous) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigemptyset(&action.sa_mask);
  if (sigaction(signo, &action, previous) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "installing the guard's handler for signal " + std::to_string(signo));
  }
}

}  // namespace

void Guard::install(const HotSpotHooks& hooks, const GuardLimits& limits) {
  if (installed.exchange(true)) {
    throw std::system_error(EALREADY, std::generic_category(), "Guard::install: called twice");
  }
  hooks_in_use = hooks;
  install_handler(watchdog::signal_number(), handle_watchdog, SA_RESTART, nullptr);
  watchdog_thread[0] = watchdog::start(limits);
  for (const int signo : kHandledSignals) {
    // Known before the handler can run and need it.
    struct sigaction* previous = &previous_actions[static_cast<size_t>(signo)];
    if (sigaction(signo, nullptr, previous) != 0) {
      throw std::system_error(errno, std::generic_category(), "reading the handler of a signal");
    }
    install_handler(signo, handle_fault, SA_NODEFER, nullptr);
  }
}

uint64_t Guard::forwarded_ns() { return walk_state.forwarded_ns; }

int Guard::watchdog_signal() { return watchdog::signal_number(); }

std::span<const int> Guard::own_threads() {
  return watchdog_thread[0] == 0 ? std::span<const int>{} : std::span<const int>{watchdog_thread};
}

bool Guard::attach_thread() {
  const size_t index = attached_threads.claim(current_tid());
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
  const size_t index = attached_threads.find(current_tid());
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
  watchdog::lend_slot(slot_, current_tid());
  walk_state.slot = slot_;
}

void Guard::Watch::give_back() {
  walk_state.slot = replaced_;
  watchdog::lend_slot(slot_, 0);
}

// noinline: the caller's loop may move to another thread between calls, and an address of
// thread-local state must not outlive the call it was computed in.
[[gnu::noinline]] WalkEnd Guard::call(void (*fn)(void*), void* arg, FaultRecord* fault,
                                      UnsafeCalls* unsafe, SanitizerReports* reports) {
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
  unsafe->count = 0;
  walk.fault = fault;
  walk.unsafe = unsafe;
  walk.reports = reports;
  if (reports != nullptr) reports->count = 0;
  fault->end = WalkEnd::returned;
  walk.locks_held = 0;
  walk.mask_changed = false;
  std::atomic<uint64_t>& sequence = walk.slot->sequence;
  const uint64_t before = sequence.load(std::memory_order_relaxed);
  sequence.store(before + 1, std::memory_order_relaxed);

  const auto end = static_cast<WalkEnd>(arch::framestorm_run_recoverable(&walk.recovery, fn, arg));

  sequence.store(before + 2, std::memory_order_relaxed);
  if (walk.mask_changed) [[unlikely]] {
    pthread_sigmask(SIG_SETMASK, &walk.original_mask, nullptr);
  }
  walk.claim.sp = 0;  // HotSpot may have left it
  walk.allocator_depth = saved_depth;
  if (end != WalkEnd::returned) [[unlikely]] {
    walk.recording = false;
    walk.reporting = false;
    walk.nested_claims = 0;
    walk.libc_entry_frame = 0;
    AllocatorScope::run_exit_action();
    errno = saved_errno;
  }
  return end;
}

}  // namespace framestorm
