// The one interface to what stepping has to know of an architecture's instructions, of HotSpot's
// interpreter on it, and of how a call is made to return elsewhere. x86-64 is in arch_x86_64.cpp.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace framestorm::stepping {

// What an instruction does to the stack of calls.
enum class Flow : uint8_t { other, call, ret };

// Of the instruction at pc, which can be read. Async-signal-safe.
Flow flow_at(uintptr_t pc);

// What is read of a thread before an instruction.
struct Registers {
  uintptr_t pc = 0, sp = 0, fp = 0;
  uintptr_t bcp = 0;     // the interpreter's bytecode pointer, in its bytecodes
  uintptr_t method = 0;  // a Method*, where a method is entered
};
Registers registers_of(const ucontext_t& context);

// The longest instruction, in bytes: a return address lies no further behind a call.
extern const size_t kLongestInstruction;

// Where a call has left its return address: the word at this address, while its first instruction
// has not been executed.
inline uintptr_t* return_slot(const Registers& now) { return reinterpret_cast<uintptr_t*>(now.sp); }

// An interpreted frame, by its fp (frame_x86.hpp). The words must be readable.
struct InterpretedFrame {
  uintptr_t caller_fp = 0;
  uintptr_t return_address = 0;
  uintptr_t return_slot = 0;  // where that stands
  const void* method = nullptr;
  uintptr_t bcp = 0;  // as the last call left it
};
InterpretedFrame interpreted_frame(uintptr_t fp);
// How far below fp sp is at least once the frame stands, in bytes.
extern const size_t kInterpretedFrame;

// Where the code of an nmethod's deoptimisation handler begins, by where a deoptimised frame's call returns
// to in it. From JDK 26 on that is a jump back (x86.ad, emit_deopt_handler).
uintptr_t deopt_handler_begin(uintptr_t entry);

// Code that only traps, as a return address; and where it has trapped.
uintptr_t trampoline();
bool is_trampoline_trap(uintptr_t pc);

}  // namespace framestorm::stepping
