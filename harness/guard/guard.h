// Containment of one walk: faults, hangs and async-signal-unsafe calls inside it come back as data.
//
//   Guard::call(fn)                the walk                        handlers, interposer
//   ─────────────────────────      ──────────────────────────      ────────────────────────────────
//   saves a recovery point   ───>  fn() returns
//   WalkEnd::returned        <───────┘
//
//   saves a recovery point   ───>  fn() faults               ───>  SIGSEGV SIGBUS SIGILL SIGFPE
//                                  fn() does not end         ───>  signal of the watchdog
//                                  fn() calls abort, exit,   ───>  interposed function
//                                  stdio of a fatal error             │
//                                                                     │ writes a FaultRecord,
//   goes on at the recovery  <────────────────────────────────────────┘ continues at the recovery
//   point: fault, hang ...                                              point
//
// A signal handler continues there by changing its own ucontext and returning, so that the kernel
// restores signal mask and signal stack.
//
// A fault outside a walk is passed on to the owner of the signal before: HotSpot, which dies as it
// would without framestorm. Inside a walk HotSpot is asked first, and only for SafeFetch (see
// HotSpotHooks::claim). Anything else that it would do for a faulting walk is a finding: it may
// throw a StackOverflowError for a guard page or take the fault for an implicit null check, and
// then the user of a profiler loses the process.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "harness/guard/sanitizer.h"
#include "harness/guard/unsafe_calls.h"

namespace framestorm {

enum class WalkEnd : uint8_t {
  returned,
  fault,          // signal contained
  hang,           // exceeded the limit, interrupted by the watchdog
  terminal_call,  // abort, exit or a stdio call that is part of HotSpot's error reporting
  vm_error,       // a check of HotSpot's own failed, see vm_error.h
  count
};

inline constexpr size_t kMaxStack = 48;
inline constexpr size_t kCodeBytesBefore = 16;
inline constexpr size_t kCodeBytes = 48;

// What was seen when a walk did not return. Plain data, filled in a signal handler.
struct FaultRecord {
  WalkEnd end = WalkEnd::returned;
  int signo = 0;
  int si_code = 0;
  uintptr_t address = 0;  // si_addr
  bool is_write = false;  // fault: it was a write that faulted
  uintptr_t pc = 0, sp = 0, fp = 0;
  greg_t registers[NGREG] = {};
  // Return addresses of the walker, innermost first, stack[0] == pc; by frame pointers, bounded by
  // the recovery point's frame.
  uint32_t stack_size = 0;
  uintptr_t stack[kMaxStack] = {};
  // Bytes around pc, from pc - kCodeBytesBefore; code_size 0 when pc is unreadable. Unreadable
  // bytes before pc are 0.
  uint32_t code_size = 0;
  uint8_t code[kCodeBytes] = {};
  const char* function = nullptr;  // terminal_call: its name (static storage)
  // vm_error: condition and file, "assert(is_nmethod()) failed (codeBlob.hpp)"; the same with line
  // and values.
  char error[160] = {};
  char error_detail[320] = {};
  // pthread locks the walk still held, one more when it was abandoned in the allocator: with any,
  // the process is not reusable.
  uint32_t locks_held = 0;
};

// Faults of one walk that its walker contained by itself, in a handler of its own (see
// signal_table.h). Plain data, filled in a signal handler.
struct ContainedFaults {
  uint32_t count = 0;
  // What the containment left behind, when there was one: pthread locks that the walk has not given
  // back, and a signal mask that is not the one before the first fault. It is put right.
  uint32_t locks_held = 0;
  bool mask_changed = false;
  uint64_t mask_before = 0;  // the kernel's sigset_t

  void finish(int32_t locks);
};

// A write of a walk to memory that is not its own (write_watch.h). Plain data, filled in a signal
// handler.
struct WalkWrite {
  uintptr_t address = 0;
  // As of FaultRecord; stack[0] is where it was made.
  uint32_t stack_size = 0;
  uintptr_t stack[kMaxStack] = {};
};
inline constexpr size_t kMaxWalkWrites = 4;
struct WalkWrites {
  uint32_t count = 0;  // may be more than are kept
  WalkWrite writes[kMaxWalkWrites];
};

// How the guard asks the JVM about a fault; set once a JVM runs. Called in the signal handler.
struct HotSpotHooks {
  // True when HotSpot recognised the fault as one of its SafeFetch accesses and moved uc's pc to
  // the continuation. Must not have any other effect.
  bool (*claim)(int signo, siginfo_t* info, void* ucontext) = nullptr;
};

struct GuardLimits {
  // A walk is hung when it burned this much CPU time, or this much wall time without burning CPU
  // (blocked on something). CPU time, so that a busy machine does not make findings.
  uint64_t cpu_ns = 200'000'000;
  uint64_t wall_ns = 5'000'000'000;
};

struct WatchSlot;

class Guard {
 public:
  // Installs the front handlers (keeping the previous ones to forward to) and starts the watchdog
  // thread. Once per process, after the JVM is up. Throws std::system_error. A walk must not run
  // with a fault signal, SIGABRT or watchdog_signal() blocked (the sa_mask of the handler it runs
  // in): the kernel kills a thread for a fault it blocks.
  static void install(const HotSpotHooks& hooks, const GuardLimits& limits);

  // Gives the calling thread a signal stack of the guard's, so that a walk that overflows the
  // thread's stack is contained too; detach restores what was there. Both async-signal-safe,
  // neither on a signal stack. At most kMaxAttached threads at a time; attach returns false beyond
  // that.
  static constexpr size_t kMaxAttached = 64;
  static bool attach_thread();
  static void detach_thread();

  // From now on attach_thread() does nothing: walkers that contain their faults may look for their
  // jump buffer near the handler's sp, and HotSpot on Linux gives no handler another stack. A walk
  // that overflows the stack then ends the process.
  static void walk_on_one_stack();

  // Where a driver with more threads than the watchdog knows makes its walks: one thread at a time
  // has the watch, and is watched through it. Reserved for good, at most 256.
  class Watch {
   public:
    // Throws std::system_error when none is left.
    Watch();
    // The calling thread's walks are watched here until give_back(), on the same thread. Both
    // async-signal-safe, neither in a walk.
    void take();
    void give_back();

   private:
    WatchSlot* slot_;
    WatchSlot* replaced_ = nullptr;
  };

  // Runs fn(arg) contained. In signal context or not; async-signal-safe itself; never nested on one
  // thread. fn must not own anything that needs unwinding: it is abandoned on a fault.
  // *fault is filled unless the walk returned; a walk that returned although it faulted, because
  // HotSpot contained that by itself (a longjmp out of `claim`), has it filled too: fault->end is
  // then WalkEnd::fault. *unsafe always describes the unsafe calls it made,
  // *reports (unless null) what sanitizers said of it. After a contained walk errno is what it was;
  // the signal mask is after every walk. With `contained` the walker contains faults by itself:
  // each goes first to the handler that is before HotSpot's, and *contained says what of it.
  static WalkEnd call(void (*fn)(void*), void* arg, FaultRecord* fault, UnsafeCalls* unsafe,
                      SanitizerReports* reports = nullptr, ContainedFaults* contained = nullptr);

  // Where walkers contained faults, and how often, the most first; pc 0: elsewhere. Allocates.
  static std::vector<std::pair<uintptr_t, uint64_t>> contained_places();

  // Processor time (ns) that the calling thread has spent in the handlers which its faults outside
  // walks were passed on to. HotSpot blocks all other signals in its own: nothing samples a thread
  // there. Async-signal-safe.
  static uint64_t forwarded_ns();

  // The signal that interrupts hung walks.
  static int watchdog_signal();

  // Thread ids of the guard's own threads: they must never be halted.
  static std::span<const int> own_threads();
};

// Return addresses by frame pointers: from pc and fp, reading only [sp, limit). Writes at most
// `size`, returns how many. Frames strictly ascend. Async-signal-safe; never faults on a broken
// chain (where [sp, limit) has unmapped pages: once Guard::install was called). The caller of a
// function that has no frame of its own yet is missed.
size_t frame_pointer_backtrace(uintptr_t pc, uintptr_t sp, uintptr_t fp, uintptr_t limit,
                               uintptr_t* out, size_t size);

}  // namespace framestorm
