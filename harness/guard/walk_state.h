// What a thread knows about the walk it is in. Private to the guard.
//
// One plain record per thread in static TLS: reading it costs one fs-relative load, allocates
// nothing and is async-signal-safe from the first instruction of a thread.
#pragma once

#include <signal.h>

#include <cstdint>

#include "harness/guard/arch.h"
#include "harness/guard/guard.h"

namespace framestorm {

struct WatchSlot;

struct WalkState {
  arch::RecoveryPoint recovery;  // armed: the thread is in a walk
  arch::RecoveryPoint claim;     // armed: HotSpotHooks::claim is running for a fault of that walk
  uint32_t nested_claims = 0;
  bool recording = false;  // the fault record is being filled: a fault now is the guard's own
  FaultRecord* fault = nullptr;
  UnsafeCalls* unsafe = nullptr;
  SanitizerReports* reports = nullptr;
  ContainedFaults* contained = nullptr;  // not null: its walker contains faults by itself
  bool reporting = false;                // a sanitizer writes its report: a fault now is its own
  int reporting_errno = 0;
  // Frame of the interposed function the walk is in, 0 when none: libc below it has no frame
  // pointers.
  uintptr_t libc_entry_frame = 0;
  int32_t locks_held = 0;
  uint32_t allocator_depth = 0;
  void (*allocator_exit)() = nullptr;
  bool mask_changed = false;  // by the walk; original_mask is what it was
  sigset_t original_mask = {};
  WatchSlot* slot = nullptr;
  uint64_t forwarded_ns = 0;  // see Guard::forwarded_ns
  // A profiler's own thread makes the walk, see sampler_thread.h: this one is the profiler's, or the
  // one that it walks.
  bool for_other = false;
  bool by_other = false;
};

extern constinit thread_local WalkState walk_state __attribute__((tls_model("initial-exec")));

// In a walk, and not in HotSpot's handling of a fault of it or in a sanitizer's report about it.
// Async-signal-safe.
inline bool in_walk(const WalkState& walk) {
  return walk.recovery.sp != 0 && walk.claim.sp == 0 && !walk.reporting;
}

// The last address a backtrace of the walk may read: the slot of fn's return address into the
// guard.
inline uintptr_t backtrace_limit(const arch::RecoveryPoint& point) {
  return point.sp - sizeof(uintptr_t);
}

// The caller of the interposed function with this frame, and its callers, below `limit`. Writes at
// most `size`, returns how many.
size_t backtrace_from_interposer(uintptr_t frame, uintptr_t limit, uintptr_t* out, size_t size);

// Fills *walk.fault from the interrupted context. In the handler only.
void record_interrupted(WalkState* walk, WalkEnd end, int signo, const siginfo_t* info,
                        const ucontext_t* context);

// Fills *walk.fault for a call of `function` whose interposer has the given frame.
void record_terminal_call(WalkState* walk, const char* function, uintptr_t frame);

}  // namespace framestorm
