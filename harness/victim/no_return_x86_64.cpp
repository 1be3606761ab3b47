#if !defined(__x86_64__)
#error "add no_return_<architecture>.cpp"
#endif

#include "harness/victim/no_return.h"

// Nothing may stand between the functions. None of them returns: the innermost one goes back to the
// outermost, which has the frame pointer. With the next function's table a frame's return address is
// the word at its sp: zero, where the stack would end, or the address of code that stands behind what
// might be the end of a call.
//
//   entry ─> direct ─> register ─> memory ─> behind_jump ─> behind_move ─> behind_zeros ─> jumps ─> counts
//
// `counts` is jumped to, and would return to a place that no call is before.
asm(R"(
  .text
  .globl framestorm_no_return_entry
  .hidden framestorm_no_return_entry
  .type framestorm_no_return_entry, @function
framestorm_no_return_entry:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register rbp
  call framestorm_no_return_direct
framestorm_no_return_back:
  leave
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc
  .size framestorm_no_return_entry, .-framestorm_no_return_entry

  .macro framestorm_begin name
  .type framestorm_no_return_\name, @function
framestorm_no_return_\name:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  .endm
  .macro framestorm_end name
  .cfi_endproc
  .size framestorm_no_return_\name, .-framestorm_no_return_\name
  .endm

  # call rel32
  framestorm_begin direct
  movq $0, (%rsp)
  call framestorm_no_return_register
  framestorm_end direct

  # call *disp32(%rsp), in the seven bytes that no assembler takes for such a small displacement
  framestorm_begin memory
  movq $0, (%rsp)
  leaq framestorm_no_return_behind_jump(%rip), %rax
  movq %rax, 8(%rsp)
  .byte 0xff, 0x94, 0x24, 0x08, 0x00, 0x00, 0x00
  framestorm_end memory

  # call *%rax
  framestorm_begin register
  movq $0, (%rsp)
  leaq framestorm_no_return_memory(%rip), %rax
  call *%rax
  framestorm_end register

  framestorm_begin behind_jump
  leaq framestorm_behind_jump(%rip), %rax
  movq %rax, (%rsp)
  call framestorm_no_return_behind_move
  framestorm_end behind_jump

  framestorm_begin behind_zeros
  leaq framestorm_behind_zeros(%rip), %rax
  movq %rax, (%rsp)
  call framestorm_no_return_jumps
  framestorm_end behind_zeros

  framestorm_begin behind_move
  leaq framestorm_behind_move(%rip), %rax
  movq %rax, (%rsp)
  call framestorm_no_return_behind_zeros
  framestorm_end behind_move

  # What it jumps to stands right behind it, too.
  framestorm_begin jumps
  leaq framestorm_no_return_jumped(%rip), %rax
  pushq %rax
  .cfi_adjust_cfa_offset 8
  movq %rdi, %rcx
  jmp framestorm_no_return_counts
  .cfi_adjust_cfa_offset -8
  .fill 8, 1, 0x90
framestorm_no_return_jumped:
  ud2
  framestorm_end jumps

  # By one instruction: who counts is at the first byte.
  .type framestorm_no_return_counts, @function
framestorm_no_return_counts:
  .cfi_startproc
  loop framestorm_no_return_counts
  jmp framestorm_no_return_back
  framestorm_end counts

  # Addresses on the stack, which nobody runs.
  .type framestorm_no_call, @function
framestorm_no_call:
  .cfi_startproc
  .fill 8, 1, 0x90
  jmp *%rax
framestorm_behind_jump:
  .fill 8, 1, 0x90
  movq %rdx, %rax
framestorm_behind_move:
  nopl 0(%rax, %rax, 1)
  .byte 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
framestorm_behind_zeros:
  ud2
  .cfi_endproc
  .size framestorm_no_call, .-framestorm_no_call
)");

extern "C" void framestorm_no_return_entry(uint64_t rounds);

namespace framestorm {

void count_below_no_return(uint64_t rounds) { framestorm_no_return_entry(rounds); }

}  // namespace framestorm
