#include "harness/guard/unsafe_calls.h"

#include <errno.h>

#include <atomic>
#include <cstring>

#include "harness/guard/interposer.h"
#include "harness/guard/sampler_thread.h"
#include "harness/guard/unsafe_calls_record.h"

namespace framestorm {

constinit thread_local WalkState walk_state __attribute__((tls_model("initial-exec")));

namespace {

// The kernel's part of a mask, without the signals that a call cannot block: two of them are glibc's
// own.
uint64_t changeable(const sigset_t& mask) {
  uint64_t bits = 0;
  std::memcpy(&bits, &mask, sizeof bits);
  for (const int signo : {SIGKILL, SIGSTOP, __SIGRTMIN, __SIGRTMIN + 1}) {
    bits &= ~(uint64_t{1} << (signo - 1));
  }
  return bits;
}

}  // namespace

void record_unsafe_call(const char* function, uintptr_t frame) {
  UnsafeCalls* calls = walk_state.unsafe;
  const uint32_t index = calls->count++;
  if (index >= kMaxUnsafeCalls) {
    return;
  }
  UnsafeCall& call = calls->calls[index];
  call.function = function;
  call.stack_size = static_cast<uint32_t>(backtrace_from_interposer(
      frame, backtrace_limit(walk_state.recovery), call.stack, kUnsafeStack));
}

void end_walk_in_terminal_call(const char* function, uintptr_t frame) {
  WalkState& walk = walk_state;
  if (walk.claim.sp != 0) {
    arch::framestorm_resume(&walk.claim, 1);
  }
  if (walk.recovery.sp != 0) {
    record_terminal_call(&walk, function, frame);
    if (walk.for_other) sampler::give_up(WalkEnd::terminal_call);
    arch::framestorm_resume(&walk.recovery, static_cast<int>(WalkEnd::terminal_call));
  }
}

void note_mask_change(int how, const sigset_t& set, const sigset_t& before) {
  WalkState& walk = walk_state;
  if (walk.recovery.sp == 0) return;
  if (!walk.mask_changed) walk.original_mask = before;
  const uint64_t change = changeable(set);
  const uint64_t was = changeable(before);
  const uint64_t now = how == SIG_BLOCK     ? was | change
                       : how == SIG_UNBLOCK ? was & ~change
                                            : change;
  walk.mask_changed = now != changeable(walk.original_mask);
  walk.unsafe->mask_changed = walk.mask_changed;
}

void AllocatorScope::run_exit_action() {
  WalkState& walk = walk_state;
  if (walk.allocator_depth != 0 || walk.allocator_exit == nullptr) {
    return;
  }
  void (*action)() = walk.allocator_exit;
  walk.allocator_exit = nullptr;
  const int saved_errno = errno;
  action();
  errno = saved_errno;
}

namespace interposer {

bool in_allocator() { return walk_state.allocator_depth != 0; }

void on_allocator_exit(void (*action)()) { walk_state.allocator_exit = action; }

void leave_threads_alone() { threads_left_alone.store(true, std::memory_order_release); }

void set_thread_end_hook(ThreadEndHook hook) {
  thread_end_hook.store(hook, std::memory_order_release);
}

void set_thread_start_hook(ThreadStartHook hook) {
  thread_start_hook.store(hook, std::memory_order_release);
}

}  // namespace interposer

}  // namespace framestorm
