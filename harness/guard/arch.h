// What the guard needs to know about the machine: recovery points, the registers in a signal
// context, loads that may fault, and interposition stubs that keep the caller's return address.
// One file per architecture implements it (arch_x86_64.cpp). Everything here is async-signal-safe
// and works on the calling thread only.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <span>

namespace framestorm::arch {

// Where a contained function is abandoned to. Armed while sp is not 0: from after the last register
// is saved until before the frame of run_recoverable goes away, so a handler that finds it armed
// can always resume there.
struct RecoveryPoint {
  uintptr_t callee_saved[6] = {};
  uintptr_t sp = 0;
  uint32_t vector_control = 0;  // control register of vector arithmetic
  uint32_t float_control = 0;   // of other floating-point arithmetic, where that has its own
};

// Calls fn(arg) with *point armed. Returns 0 when fn returned, else the `end` of whoever resumed.
// Nothing unwinds out of fn: a C++ exception that leaves it ends in std::terminate.
extern "C" int framestorm_run_recoverable(RecoveryPoint* point, void (*fn)(void*),
                                          void* arg) noexcept;

// Abandons everything below *point, from ordinary code on the thread that armed it.
extern "C" [[noreturn]] void framestorm_resume(RecoveryPoint* point, int end) noexcept;

// The same from a signal handler: the kernel resumes there when the handler returns, and with it
// restores the signal mask and the state of the alternate stack.
void resume_from_handler(ucontext_t* context, RecoveryPoint* point, int end);

uintptr_t pc_of(const ucontext_t* context);
uintptr_t sp_of(const ucontext_t* context);
uintptr_t fp_of(const ucontext_t* context);
// Names of a context's first registers, in the order of gregset_t; what follows has none here.
std::span<const char* const> register_names();
// Puts pc, sp and fp into otherwise empty registers.
void set_frame(greg_t* registers, uintptr_t pc, uintptr_t sp, uintptr_t fp);
// True when the fault of this context came from fetching the instruction at pc, not from running
// it.
bool is_fetch_fault(const ucontext_t* context, int signo);
// True when it came from a write to memory.
bool is_write_fault(const ucontext_t* context, int signo);

// Loads the aligned word at `address`; false when it is not readable. Needs the guard's handlers
// (Guard::install) and SIGSEGV and SIGBUS not blocked when it is not.
bool safe_load(uintptr_t address, uintptr_t* value);
// In the fault handler: continues a safe_load that faulted; false when the fault is no such load.
bool fix_up_safe_load(ucontext_t* context);

}  // namespace framestorm::arch
