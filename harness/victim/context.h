// The one interface to an architecture's registers: everything else names them by input.h's
// Register. x86-64 is in context_x86_64.cpp; AArch64 would be another file that defines the same
// functions.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

#include "harness/input/input.h"

namespace framestorm {

// All async-signal-safe.
uintptr_t get_register(const ucontext_t& context, Register reg);
// `registers`: those of a context, as they were copied from it.
uintptr_t get_register(const greg_t (&registers)[NGREG], Register reg);
void set_register(ucontext_t* context, Register reg, uintptr_t value);
// Of a context in HotSpot's interpreter: where its bytecode is (os::fetch_bcp_from_context). It may use that
// register otherwise for a moment.
uintptr_t get_bytecode_pointer(const ucontext_t& context);

// Bytes below sp that a leaf function may use and a signal handler leaves alone (System V ABI).
inline constexpr uintptr_t kRedZone = 128;

// Copies what a walker may read of a context. The floating-point state stays shared: `from` must
// outlive `to`.
void copy_context(const ucontext_t& from, ucontext_t* to);

// Whether two contexts hold the same registers and signal mask.
bool same_context(const ucontext_t& a, const ucontext_t& b);

// Single-stepping: SIGTRAP after each instruction of whoever runs with this context.
void set_single_step(ucontext_t* context, bool on);
// The same for the calling thread, from the next instruction on.
void start_single_step();
// Whether a SIGTRAP that interrupted `context` came for that, and not for a breakpoint.
bool is_single_step(const siginfo_t& info, const ucontext_t& context);

}  // namespace framestorm
