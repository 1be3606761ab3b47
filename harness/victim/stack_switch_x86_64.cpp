#if !defined(__x86_64__)
#error "add stack_switch_<architecture>.cpp"
#endif

#include <cstdint>

#include "harness/victim/stack_switch.h"

// System V ABI: rbx rbp r12-r15, mxcsr and the x87 control word survive a call.
asm(R"(
  .text
  .globl framestorm_switch_stack
  .hidden framestorm_switch_stack
  .type framestorm_switch_stack, @function
framestorm_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  subq $8, %rsp
  stmxcsr (%rsp)
  fnstcw 4(%rsp)
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  ldmxcsr (%rsp)
  fldcw 4(%rsp)
  addq $8, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size framestorm_switch_stack, .-framestorm_switch_stack
)");

namespace framestorm {

void* prepare_stack(void* stack, size_t size, void (*entry)()) {
  auto* top = reinterpret_cast<uint64_t*>((reinterpret_cast<uintptr_t>(stack) + size) & ~15UL);
  *--top = 0;  // entry's return address: end of the frame chain
  *--top = reinterpret_cast<uint64_t>(entry);
  for (int i = 0; i < 6; ++i) *--top = 0;
  *--top = 0x0000037f00001f80;  // default x87 control word and mxcsr
  return top;
}

}  // namespace framestorm
