// What an interposed function does inside a walk. Private to the guard; async-signal-safe.
// `frame` is the interposer's own frame address (__builtin_frame_address(0)).
#pragma once

#include <cstdint>

#include "harness/guard/walk_state.h"

namespace framestorm {

// Counts the call, and keeps it with its stack while there is room.
void record_unsafe_call(const char* function, uintptr_t frame);

// A terminal call inside a walk ends it; inside HotSpotHooks::claim it ends only that. Else
// returns.
void end_walk_in_terminal_call(const char* function, uintptr_t frame);

// That the walk has called pthread_sigmask(how, set) with the mask `before`. Keeps the mask as it was
// before the walk first changed it, so that the guard restores it.
void note_mask_change(int how, const sigset_t& set, const sigset_t& before);

inline void count_lock(int change) {
  if (walk_state.recovery.sp != 0) {
    walk_state.locks_held += change;
  }
}

// Marks the walk as being in an unsafe libc function for the scope's duration. A contained walk
// never leaves the scope: Guard::call clears the mark.
class UnsafeCallScope {
 public:
  [[gnu::always_inline]] UnsafeCallScope(const char* function, void* frame) {
    if (in_walk(walk_state)) [[unlikely]] {
      record_unsafe_call(function, reinterpret_cast<uintptr_t>(frame));
      if (walk_state.libc_entry_frame == 0) {
        walk_state.libc_entry_frame = frame_ = reinterpret_cast<uintptr_t>(frame);
      }
    }
  }
  [[gnu::always_inline]] ~UnsafeCallScope() {
    if (frame_ != 0) [[unlikely]] {
      walk_state.libc_entry_frame = 0;
    }
  }
  UnsafeCallScope(const UnsafeCallScope&) = delete;
  UnsafeCallScope& operator=(const UnsafeCallScope&) = delete;

 private:
  uintptr_t frame_ = 0;
};

// Between the allocator's entry and exit, or those of a function that takes another lock of libc's which
// the loop takes; see interposer::in_allocator.
class AllocatorScope {
 public:
  [[gnu::always_inline]] AllocatorScope() {
    ++walk_state.allocator_depth;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  [[gnu::always_inline]] ~AllocatorScope() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    --walk_state.allocator_depth;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // A signal before the decrement left its action here; one after it found the allocator left.
    if (walk_state.allocator_exit != nullptr) [[unlikely]] {
      run_exit_action();
    }
  }
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

  // Runs the pending action when the thread is out of the allocator; errno is kept.
  static void run_exit_action();
};

}  // namespace framestorm
