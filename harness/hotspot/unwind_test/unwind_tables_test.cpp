// The unwinder on real frames: this program's, libc's, the kernel's.
#include "prims/asyncUnwindTables.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <thread>
#include <utility>

#include "harness/hotspot/unwind_test/fake_object.h"
#include "harness/hotspot/unwind_test/safe_fetch.h"
#include "harness/hotspot/unwind_test/stepped_walk.h"
#include "harness/hotspot/unwind_test/victims.h"

extern "C" int framestorm_plt_leaf(int value);
extern "C" int framestorm_call_through_plt(int value);

// A function whose first instruction traps, behind one whose frame is described otherwise: whoever
// looks at pc - 1 gets that one's rule. And a call that is its function's last instruction (as of
// what does not return), before such a one: whoever looks at the return address gets that one's.
asm(R"(
  .text
  .type framestorm_other_frame, @function
framestorm_other_frame:
  .cfi_startproc
  .cfi_def_cfa_offset 4096
  nop
  .cfi_endproc
  .size framestorm_other_frame, . - framestorm_other_frame
  .globl framestorm_trap_at_entry
  .type framestorm_trap_at_entry, @function
framestorm_trap_at_entry:
  .cfi_startproc
  ud2
  ret
  .cfi_endproc
  .size framestorm_trap_at_entry, . - framestorm_trap_at_entry

  .globl framestorm_ends_in_call, framestorm_behind_call
  .type framestorm_ends_in_call, @function
framestorm_ends_in_call:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  call framestorm_trap_at_entry
  .cfi_endproc
  .size framestorm_ends_in_call, . - framestorm_ends_in_call
  .type framestorm_behind_call, @function
framestorm_behind_call:
  .cfi_startproc
  .cfi_def_cfa_offset 64
  addq $24, %rsp
  ret
  .cfi_endproc
  .size framestorm_behind_call, . - framestorm_behind_call
)");
extern "C" void framestorm_ends_in_call();
extern "C" char framestorm_behind_call[];
extern "C" void framestorm_trap_at_entry();

namespace framestorm::unwind_test {
namespace {

using Step = AsyncUnwindTables::Step;

struct Trace {
  std::array<uintptr_t, 128> pcs{};
  size_t count = 0;
  int interrupted_at = -1;          // index of the first frame behind a signal handler
  AsyncRegisters interrupted = {};  // its registers
  Step last = Step::stepped;

  bool reaches(uintptr_t low, uintptr_t size) const {
    return std::any_of(pcs.begin(), pcs.begin() + static_cast<ptrdiff_t>(count),
                       [&](uintptr_t pc) { return pc - low < size; });
  }
};

// Signal context.
void walk(AsyncRegisters registers, bool interrupted, const StackBounds& stack, Trace* trace) {
  while (trace->count < trace->pcs.size()) {
    trace->pcs[trace->count++] = registers.pc;
    trace->last = AsyncUnwindTables::step(&registers, interrupted, stack.low, stack.high);
    interrupted = trace->last == Step::stepped_to_interrupted;
    if (interrupted && trace->interrupted_at < 0) {
      trace->interrupted_at = static_cast<int>(trace->count);
      trace->interrupted = registers;
    }
    if (!interrupted && trace->last != Step::stepped) return;
  }
}

AsyncRegisters registers_of(const void* context) {
  const greg_t* saved = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return {static_cast<uintptr_t>(saved[REG_RIP]), static_cast<uintptr_t>(saved[REG_RSP]),
          static_cast<uintptr_t>(saved[REG_RBP])};
}

__attribute__((always_inline)) inline AsyncRegisters registers_here() {
  AsyncRegisters here = {};
  asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
               : "=r"(here.pc), "=r"(here.sp), "=r"(here.fp));
  return here;
}

class UnwindTables : public testing::Test {
 protected:
  static void SetUpTestSuite() { install_safe_fetch(); }
};

// Every walk at every instruction is right and complete.
void expect_all_right(const SteppedWalks& walks, uint64_t least_instructions, int least_depth) {
  EXPECT_GE(walks.instructions, least_instructions);
  EXPECT_GE(walks.deepest, least_depth);
  EXPECT_GT(walks.frames, walks.instructions);
  EXPECT_EQ(walks.wrong, 0U) << walks.explain_wrong();
  EXPECT_EQ(walks.given_up, 0U) << walks.explain_given_up();
}

volatile int result = 0;

TEST_F(UnwindTables, EveryInstructionOfAChainWithoutFramePointers) {
  const SteppedWalks walks = walk_at_every_instruction([] { result = call_chain(5); });
  expect_all_right(walks, 1000, 9);
}

TEST_F(UnwindTables, EveryInstructionOfOddDirectives) {
  const SteppedWalks walks =
      walk_at_every_instruction([] { result = framestorm_odd_directives(); });
  EXPECT_EQ(result, 7);
  expect_all_right(walks, 30, 4);
}

// By the program's own PLT, for which its linker has written no tables.
TEST_F(UnwindTables, EveryInstructionOfLibc) {
  const int expected = through_libc();
  const SteppedWalks walks = walk_at_every_instruction([] { result = through_libc(); });
  EXPECT_EQ(result, expected);
  EXPECT_GE(walks.instructions, 5000U);
  EXPECT_GE(walks.deepest, 6);
  EXPECT_EQ(walks.wrong, 0U) << walks.explain_wrong();
  EXPECT_EQ(walks.given_up, 0U) << walks.explain_given_up();
}

TEST_F(UnwindTables, EveryInstructionOfAPlt) {
  constexpr auto kBody = [] { result = framestorm_call_through_plt(3); };
  // Not bound yet: the run-time linker's resolver bases its frame on rbx, which nobody follows
  // here.
  const SteppedWalks first = walk_at_every_instruction(kBody);
  EXPECT_EQ(result, 20);
  EXPECT_EQ(first.wrong, 0U) << first.explain_wrong();
  EXPECT_GT(first.given_up, 0U) << "bound before?";
  for (uint64_t i = 0; i < std::min<uint64_t>(first.given_up, SteppedWalks::kKept); ++i) {
    EXPECT_EQ(first.given_up_places[i].step, Step::unsupported) << first.explain_given_up();
  }

  const SteppedWalks second = walk_at_every_instruction(kBody);
  expect_all_right(second, 15, 4);
}

TEST_F(UnwindTables, EveryInstructionOfTheVdso) {
  const SteppedWalks walks = walk_at_every_instruction([] {
    timespec now{};
    result = clock_gettime(CLOCK_MONOTONIC, &now);
  });
  EXPECT_EQ(result, 0);
  EXPECT_EQ(walks.wrong, 0U) << walks.explain_wrong();
  EXPECT_EQ(walks.given_up, 0U) << walks.explain_given_up();
}

Trace handler_trace;
AsyncRegisters handler_context;
StackBounds handler_stack;

void on_signal(int signo, siginfo_t*, void* context) {
  walk(registers_here(), true, handler_stack, &handler_trace);
  handler_context = registers_of(context);
  constexpr greg_t kTrapLength = 2;
  if (signo == SIGILL) static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += kTrapLength;
}

void handle(int signo) {
  handler_trace = {};
  handler_stack = stack_bounds();
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(signo, &action, nullptr), 0);
}

void expect_interrupted_frame() {
  ASSERT_GT(handler_trace.interrupted_at, 0);
  EXPECT_EQ(handler_trace.interrupted.pc, handler_context.pc);
  EXPECT_EQ(handler_trace.interrupted.sp, handler_context.sp);
  EXPECT_EQ(handler_trace.interrupted.fp, handler_context.fp);
  EXPECT_EQ(handler_trace.last, Step::end);
}

TEST_F(UnwindTables, ThroughASignalFrame) {
  handle(SIGUSR1);
  raise(SIGUSR1);
  expect_interrupted_frame();
  EXPECT_GT(handler_trace.count, 6U);  // gtest is beneath
}

TEST_F(UnwindTables, ThroughASignalFrameToAFunctionsFirstInstruction) {
  handle(SIGILL);
  framestorm_trap_at_entry();
  expect_interrupted_frame();
  EXPECT_EQ(handler_context.pc, reinterpret_cast<uintptr_t>(framestorm_trap_at_entry));
}

TEST_F(UnwindTables, ThroughACallThatIsAFunctionsLastInstruction) {
  handle(SIGILL);
  framestorm_trap_at_entry();
  const Trace without = std::exchange(handler_trace, {});
  framestorm_ends_in_call();
  expect_interrupted_frame();
  const auto interrupted = static_cast<size_t>(handler_trace.interrupted_at);
  EXPECT_EQ(handler_trace.pcs[interrupted + 1],
            reinterpret_cast<uintptr_t>(framestorm_behind_call));
  // The same callers, one frame further down.
  ASSERT_EQ(handler_trace.count, without.count + 1);
  for (size_t i = interrupted + 2; i < without.count; ++i) {
    EXPECT_EQ(handler_trace.pcs[i + 1], without.pcs[i]);
  }
}

// A thread that waits for a futex, walked by another, which knows its context.
class Sleeper {
 public:
  Sleeper() : thread_([this] { run(); }) {
    while (!asleep_) std::this_thread::yield();
  }
  ~Sleeper() {
    futex_ = 1;
    syscall(SYS_futex, &futex_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  AsyncRegisters context() const { return context_; }
  StackBounds stack() const { return stack_; }

 private:
  static thread_local Sleeper* current;

  // Halts in the handler, as a sampler's victim does.
  static void on_halt(int, siginfo_t*, void* context) {
    current->context_ = registers_of(context);
    current->asleep_ = true;
    while (current->futex_ == 0) {
      syscall(SYS_futex, &current->futex_, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    }
  }

  __attribute__((noinline)) void run() {
    current = this;
    stack_ = stack_bounds();
    struct sigaction action{};
    action.sa_sigaction = on_halt;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR2, &action, nullptr);
    pthread_t self = pthread_self();
    std::thread halter([&] {
      usleep(20'000);  // most often the thread is in its wait by then; right in either case
      pthread_kill(self, SIGUSR2);
    });
    while (futex_ == 0) syscall(SYS_futex, &futex_, FUTEX_WAIT, 0, nullptr, nullptr, 0);
    halter.join();
  }

  AsyncRegisters context_ = {};
  StackBounds stack_;
  std::atomic<bool> asleep_ = false;
  std::atomic<int> futex_ = 0;
  std::thread thread_;
};
thread_local Sleeper* Sleeper::current = nullptr;

TEST_F(UnwindTables, AnotherThreadInAFutexWait) {
  const Sleeper sleeper;
  Trace trace;
  walk(sleeper.context(), true, sleeper.stack(), &trace);
  EXPECT_EQ(trace.last, Step::end);
  EXPECT_GE(trace.count, 4U);  // syscall, run, std::thread's entry, libc's
  const LoadedObject here = loaded_object(reinterpret_cast<uintptr_t>(&registers_of));
  EXPECT_TRUE(trace.reaches(here.range.low, here.range.high - here.range.low));
  for (size_t i = 0; i < trace.count; ++i) EXPECT_TRUE(AsyncUnwindTables::is_code(trace.pcs[i]));
}

TEST_F(UnwindTables, ToTheMainThreadsEnd) {
  Trace trace;
  walk(registers_here(), true, stack_bounds(), &trace);
  EXPECT_EQ(trace.last, Step::end);
  const LoadedObject libc = loaded_object(reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, "qsort")));
  EXPECT_TRUE(trace.reaches(libc.range.low, libc.range.high - libc.range.low));
}

TEST_F(UnwindTables, TheStackIsReadWithinItsBoundsOnly) {
  const AsyncRegisters here = registers_here();
  const StackBounds whole = stack_bounds();
  AsyncRegisters registers = here;
  ASSERT_EQ(AsyncUnwindTables::step(&registers, true, whole.low, whole.high), Step::stepped);
  const uintptr_t frame_end = registers.sp;

  for (const uintptr_t high : {frame_end - 8, frame_end - 1, here.sp}) {
    registers = here;
    EXPECT_EQ(AsyncUnwindTables::step(&registers, true, whole.low, high), Step::bad_stack);
    EXPECT_EQ(registers.pc, here.pc);
    EXPECT_EQ(registers.sp, here.sp);
  }
  registers = here;
  EXPECT_EQ(AsyncUnwindTables::step(&registers, true, frame_end, whole.high), Step::bad_stack);
  registers = here;
  EXPECT_EQ(AsyncUnwindTables::step(&registers, true, whole.low, frame_end), Step::stepped);
}

TEST_F(UnwindTables, WhatIsNoCodeHasNoTable) {
  int local = 0;
  const StackBounds stack = stack_bounds();
  for (const uintptr_t pc :
       {uintptr_t{0}, uintptr_t{1}, ~uintptr_t{0}, reinterpret_cast<uintptr_t>(&local),
        reinterpret_cast<uintptr_t>(&handler_trace)}) {
    EXPECT_FALSE(AsyncUnwindTables::is_code(pc)) << pc;
    for (const bool interrupted : {true, false}) {
      AsyncRegisters registers = {pc, stack.low, stack.low};
      EXPECT_EQ(AsyncUnwindTables::step(&registers, interrupted, stack.low, stack.high),
                Step::no_table);
    }
  }
  EXPECT_TRUE(AsyncUnwindTables::is_code(reinterpret_cast<uintptr_t>(&registers_of)));
  EXPECT_TRUE(AsyncUnwindTables::is_code(reinterpret_cast<uintptr_t>(&framestorm_plt_leaf)));
  EXPECT_FALSE(AsyncUnwindTables::is_code(
      loaded_object(reinterpret_cast<uintptr_t>(&registers_of)).table_header));
}

}  // namespace
}  // namespace framestorm::unwind_test
