#if !defined(__x86_64__)
#error "add odd_tables_<architecture>.cpp"
#endif

#include "harness/victim/odd_tables.h"

// Outermost first. What asyncUnwindTables_linux.cpp cannot read, it says, and goes on by the frame pointer: where a
// table is beyond it, rbp is one. Elsewhere rbp is none, so that a table that is not followed is a trace without
// the callers.
//
//   function     table                                                                         rbp
//   ──────────── ───────────────────────────────────────────────────────────────────────────── ───────────────
//   set_loc      CIE of version 3 with eight letters; rows begin where set_loc says            0
//   letters      CIE with nine letters                                                         frame pointer
//   remembered   nine rows remembered, of which the last is restored, and then made right      frame pointer
//   base         CFA by rbx; where rbp and rsp were is said by it, too                         frame pointer
//   cfa          CFA by an expression that multiplies                                          frame pointer
//   saved        where rbp is saved is an expression that multiplies                           frame pointer
//   below        CFA by rbp                                                                    below the stack
//   offset       the caller's rbp is its CFA less 256, and not saved                           0
//   below_again  as `below`
//   value        the caller's rbp is an expression's value, and not saved                      0
//   stack        the caller's rsp is saved on the stack                                        of `value`
//
// Operands of .cfi_escape: DWARF 5, chapters 7.24 and 7.7.1. rax 0, rbx 3, rbp 6, rsp 7, return address 16.
asm(R"(
  .text
  .globl framestorm_odd_tables, framestorm_odd_tables_end
  .hidden framestorm_odd_tables, framestorm_odd_tables_end
  .type framestorm_odd_tables, @function
framestorm_odd_tables:
.Lset_loc:
  pushq %rbp
.Lset_loc_pushed:
  xorl %ebp, %ebp
  call .Lletters
  popq %rbp
.Lset_loc_popped:
  ret
.Lset_loc_end:
  .size framestorm_odd_tables, .-framestorm_odd_tables

  .section .eh_frame, "a", @unwind
.Lset_loc_cie:
  .long .Lset_loc_cie_end - .Lset_loc_cie_id
.Lset_loc_cie_id:
  .long 0
  .byte 3
  .asciz "zRRRRRRR"
  .uleb128 1
  .sleb128 -8
  .uleb128 16
  .uleb128 7
  .byte 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b  # relative to its place, four bytes
  .byte 0x0c, 7, 8                                # def_cfa rsp, 8
  .byte 0x90, 1                                   # return address at CFA - 8
  .balign 8, 0
.Lset_loc_cie_end:
  .long .Lset_loc_fde_end - .Lset_loc_fde
.Lset_loc_fde:
  .long .Lset_loc_fde - .Lset_loc_cie
  .long .Lset_loc - .
  .long .Lset_loc_end - .Lset_loc
  .uleb128 0
  .byte 0x01                                      # set_loc
  .long .Lset_loc_pushed - .
  .byte 0x0e, 16                                  # def_cfa_offset
  .byte 0x86, 2                                   # rbp at CFA - 16
  .byte 0x01
  .long .Lset_loc_popped - .
  .byte 0x0e, 8
  .byte 0xc6                                      # restore rbp
  .balign 8, 0
.Lset_loc_fde_end:

  .text
.Lletters:
  pushq %rbp
.Lletters_pushed:
  movq %rsp, %rbp
  call .Lremembered
  popq %rbp
.Lletters_popped:
  ret
.Lletters_end:

  .section .eh_frame, "a", @unwind
.Lletters_cie:
  .long .Lletters_cie_end - .Lletters_cie_id
.Lletters_cie_id:
  .long 0
  .byte 1
  .asciz "zRRRRRRRR"
  .uleb128 1
  .sleb128 -8
  .byte 16
  .uleb128 8
  .byte 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b, 0x1b
  .byte 0x0c, 7, 8
  .byte 0x90, 1
  .balign 8, 0
.Lletters_cie_end:
  .long .Lletters_fde_end - .Lletters_fde
.Lletters_fde:
  .long .Lletters_fde - .Lletters_cie
  .long .Lletters - .
  .long .Lletters_end - .Lletters
  .uleb128 0
  .byte 0x04                                      # advance_loc4
  .long .Lletters_pushed - .Lletters
  .byte 0x0e, 16
  .byte 0x86, 2
  .byte 0x04
  .long .Lletters_popped - .Lletters_pushed
  .byte 0x0e, 8
  .byte 0xc6
  .balign 8, 0
.Lletters_fde_end:

  .text
.Lremembered:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  movq %rsp, %rbp
  .cfi_def_cfa_offset 64
  .cfi_remember_state
  .cfi_remember_state
  .cfi_remember_state
  .cfi_remember_state
  .cfi_remember_state
  .cfi_remember_state
  .cfi_remember_state
  .cfi_remember_state
  .cfi_offset %rbp, -16
  .cfi_remember_state
  .cfi_restore_state
  .cfi_def_cfa_offset 16
  call .Lbase
  popq %rbp
  .cfi_def_cfa_offset 8
  .cfi_restore %rbp
  ret
  .cfi_endproc

.Lbase:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  pushq %rbx
  .cfi_def_cfa_offset 24
  .cfi_offset %rbx, -24
  movq %rsp, %rbx
  subq $8, %rsp
  .cfi_def_cfa %rbx, 24
  .cfi_escape 0x10, 6, 2, 0x76, 0                 # rbp is saved at rbp
  .cfi_escape 0x16, 7, 2, 0x76, 16                # rsp was rbp + 16
  call .Lcfa
  addq $8, %rsp
  popq %rbx
  .cfi_def_cfa %rsp, 16
  .cfi_restore %rbx
  .cfi_restore %rsp
  popq %rbp
  .cfi_def_cfa_offset 8
  .cfi_restore %rbp
  ret
  .cfi_endproc

.Lcfa:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_escape 0x0f, 6, 0x76, 48, 0x76, 16, 0x31, 0x1e  # (rbp + 16) * 1, above its caller's CFA
  call .Lsaved
  popq %rbp
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  ret
  .cfi_endproc

.Lsaved:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_escape 0x10, 6, 4, 0x76, 0, 0x31, 0x1e     # rbp is saved at rbp * 1
  call .Lbelow
  popq %rbp
  .cfi_def_cfa_offset 8
  .cfi_restore %rbp
  ret
  .cfi_endproc

.Lbelow:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  leaq -256(%rsp), %rbp
  .cfi_def_cfa %rbp, 272
  call .Loffset
  popq %rbp
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  ret
  .cfi_endproc

.Loffset:
  .cfi_startproc
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  .cfi_escape 0x14, 6, 32                         # val_offset: rbp was CFA - 32 * 8
  xorl %ebp, %ebp
  call .Lbelow_again
  leaq -240(%rsp), %rbp
  .cfi_restore %rbp
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc

.Lbelow_again:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  leaq -256(%rsp), %rbp
  .cfi_def_cfa %rbp, 272
  call .Lvalue
  popq %rbp
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  ret
  .cfi_endproc

.Lvalue:
  .cfi_startproc
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  .cfi_escape 0x16, 6, 3, 0x77, 0x90, 0x7e        # val_expression: rbp was rsp - 240
  xorl %ebp, %ebp
  call .Lstack
  leaq -240(%rsp), %rbp
  .cfi_restore %rbp
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc

.Lstack:
  .cfi_startproc
  leaq 8(%rsp), %rax
  pushq %rax
  .cfi_def_cfa_offset 16
  .cfi_offset %rsp, -16
  call *%rdi
  popq %rax
  .cfi_def_cfa_offset 8
  .cfi_restore %rsp
  ret
  .cfi_endproc
framestorm_odd_tables_end:
)");

extern "C" {
void framestorm_odd_tables(void (*function)());
extern const char framestorm_odd_tables_end[];  // NOLINT(readability-identifier-naming): a label
}

namespace framestorm {

void call_oddly_tabled(void (*function)()) { framestorm_odd_tables(function); }

bool is_oddly_tabled(uintptr_t pc) {
  return pc >= reinterpret_cast<uintptr_t>(&framestorm_odd_tables) &&
         pc < reinterpret_cast<uintptr_t>(framestorm_odd_tables_end);
}

}  // namespace framestorm
