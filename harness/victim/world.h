// Halting: every thread of the process stands still in a signal handler while victims are mutated
// and walked. So no collector, compiler or other victim can see or move what a walk sees. These
// run: the control thread (which started the JVM), the guard's threads, the thread that hosts the
// loop.
//
//   control thread   halt_all() ──┬───────── the world is halted ─────────┬── release_all()
//                                 │ halt signal                           │ futex
//   any other        runs ────────┴─> parked; hosts the loop when asked ──┴─> runs on
//
// A thread inside the allocator is not halted there, because the loop allocates, on any thread's
// arena; nor is one that opens or closes a file. Such a thread parks when it leaves the allocator.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "harness/base/address_range.h"

namespace framestorm {

// `ended`: back in glibc, which takes it down with all signals blocked; it touches nothing a walk
// sees.
enum class ThreadPhase : uint8_t { running, asked, parked, ended };

// What becomes of a thread after a trap that somebody has looked at.
enum class StepAnswer : uint8_t {
  go_on,    // to the next instruction
  pause,    // at full speed, to a trap that is no single step
  end,      // at full speed for good
  not_mine  // somebody else's trap
};

// Of a thread of this process, as the kernel says; all clear when there is no such thread. Reading it allocates.
struct ThreadStatus {
  bool sleeps = false;           // waits, and for something other than a core
  uint64_t blocked_signals = 0;  // bit n - 1: signal n
};
ThreadStatus status_of(int tid);

// Whether two threads of the same code stand equally deep, by their sps or by what is above these, in bytes.
// The first frame of a thread is below the program's thread-local storage, of which each program has its
// own size, a multiple of 64 (glibc). In a recursion it may be another turn. Signal context.
constexpr bool is_as_deep(uintptr_t one, uintptr_t other) {
  constexpr uintptr_t kUnit = 64;
  constexpr uintptr_t kMost = 1024;
  const uintptr_t difference = one > other ? one - other : other - one;
  return difference % kUnit == 0 && difference <= kMost;
}

// What a stepped thread is to stop at. All conditions that are set must hold.
struct StepGoal {
  uint64_t steps = 0;  // stop after this many instructions in any case
  uintptr_t pc = 0;    // or at this pc ...
  uintptr_t sp = 0;    // ... as deep as with this sp; 0: anywhere
  // Or at the first instruction outside; empty: anywhere.
  AddressRange stay_in = {};
  // Instead of stopping anywhere: is asked at each trap, on the thread, in signal context.
  StepAnswer (*observe)(ucontext_t* context, bool single_step) = nullptr;
};

struct ThreadSlot {
  std::atomic<int> tid{0};
  std::atomic<ThreadPhase> phase{ThreadPhase::running};
  std::atomic<uint32_t> command{0};  // futex word of the parked thread
  std::atomic<uint32_t> parks{0};    // how often it has parked
  // CPU time of the thread before which a halt signal is put off; see World::halt_after.
  std::atomic<uint64_t> not_before_ns{0};
  // Valid while parked.
  ucontext_t* context = nullptr;
  void* vm_thread = nullptr;  // HotSpot's Thread*, or null
  // Where the thread's first frame begins; above it, still in what pthreads call its stack, stand
  // its thread-local variables and descriptor. 0 for a thread that was not watched from its start.
  uintptr_t frames_top = 0;
  // Single-stepping.
  bool stepping = false;
  bool goal_met = false;
  StepGoal goal;
};

struct HaltReport {
  int halted = 0;
  std::vector<int> refused;  // tids that did not react in time: the world is not halted
  // Those that refused sleep with the halt signal blocked: most likely they wait for a lock that a
  // halted thread holds, and it helps to release the world and to halt it elsewhere.
  bool deadlocked = false;
};

class World {
 public:
  static constexpr size_t kMaxThreads = 1024;
  static constexpr uint32_t kCommandNone = 0;
  static constexpr uint32_t kCommandRelease = 1;
  static constexpr uint32_t kCommandHost = 2;

  static World& get();

  // Notes where the stacks of threads started from now on begin, and when they are over. Before the
  // JVM starts.
  static void watch_threads();
  // Also called first on every new thread from now on; null for nothing.
  static void set_start_action(void (*action)());

  // Installs the halt and step signal handlers. `current_vm_thread` gives the calling thread's
  // HotSpot thread, `host` runs the migrating loop on it; both are called in signal handlers.
  void install(void* (*current_vm_thread)(), void (*host)(ThreadSlot*));

  // Control thread only
  // ------------------------------------------------------------------------------ Halts one
  // thread; false when it is gone or does not react in time: then it does not halt later, either.
  bool halt(int tid);
  // Halts a running thread once it has used `cpu_ns` of CPU time (or, when it does not get that
  // within the patience of a halt, then). The thread halts itself, on a timer: it does not go on
  // running while the control thread waits for a core. Returns false when it is gone or does not
  // react.
  bool halt_after(int tid, uint64_t cpu_ns);
  // Of each thread that has ended something is kept; without this they are too many after a while.
  // halt_all() does it, too.
  void forget_ended();
  // Halts all threads of the process except `exempt` and the caller.
  HaltReport halt_all(const std::vector<int>& exempt);
  void release(ThreadSlot* slot);
  void release_all();
  // Lets a parked thread go on instruction by instruction; it does not park again by itself.
  void release_stepping(ThreadSlot* slot, const StepGoal& goal);
  // Lets a parked thread go on instruction by instruction until the goal, then parks it again.
  // Everything else must be released, or the goal must keep the thread from where it would wait for
  // another one. False when it did not park within the goal's steps.
  bool step(ThreadSlot* slot, const StepGoal& goal);

  // Any thread, also in signal context -----------------------------------------------------------
  ThreadSlot* find(int tid);
  // The calling thread steps itself from here on and parks at the goal: for threads that are halted
  // while they start or end. Not in signal context.
  void step_self(const StepGoal& goal);
  // Ends it before its goal, where nobody waits for that any more; in signal context, too.
  void end_step(int tid);
  // Waits until a thread that was told to step_self has parked; control thread. False on time-out.
  ThreadSlot* wait_parked(int tid, int timeout_ms);

  // Futex helpers on a slot's command word; async-signal-safe.
  static void send(ThreadSlot* slot, uint32_t command);
  static uint32_t await(ThreadSlot* slot);

 private:
  World() = default;
  static void on_halt_signal(int, siginfo_t*, void* context);
  static void on_step_signal(int, siginfo_t*, void* context);
  static void on_allocator_left();
  static void on_thread_end();
  // `asked`: only as long as somebody waits for it.
  void park(ThreadSlot* slot, ucontext_t* context, bool asked);
  ThreadSlot* claim(int tid);
  static void free_slot(ThreadSlot* slot);
  bool ask(ThreadSlot* slot);
  bool wait_asked(ThreadSlot* slot);
  // Takes back what was asked; false when it has parked meanwhile.
  static bool give_up(ThreadSlot* slot);

  std::array<ThreadSlot, kMaxThreads> slots_;
  std::atomic<uint32_t> parked_changes_{0};  // futex word of the control thread
  void* (*current_vm_thread_)() = nullptr;
  void (*host_)(ThreadSlot*) = nullptr;
};

}  // namespace framestorm
