#include "harness/hotspot/unwind_test/victims.h"

#include <alloca.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FRAMESTORM_NOINLINE __attribute__((noinline))

asm(R"(
  .text
  .globl framestorm_run_stepped, framestorm_after_stepped
  .type framestorm_run_stepped, @function
framestorm_run_stepped:
  .cfi_startproc
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  pushfq
  .cfi_adjust_cfa_offset 8
  orq $0x100, (%rsp)
  popfq
  .cfi_adjust_cfa_offset -8
  call *%rdi
framestorm_after_stepped:
  pushfq
  .cfi_adjust_cfa_offset 8
  andq $~0x100, (%rsp)
  popfq
  .cfi_adjust_cfa_offset -8
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size framestorm_run_stepped, . - framestorm_run_stepped

  .globl framestorm_odd_directives
  .type framestorm_odd_directives, @function
framestorm_odd_directives:
  .cfi_startproc
  pushq %rbx
  .cfi_escape 0x13, 0x7e                      # def_cfa_offset_sf, factored by -8
  .cfi_escape 0x05, 0x03, 0x02                # offset_extended rbx
  pushq %rbp
  .cfi_escape 0x12, 0x07, 0x7d                # def_cfa_sf rsp
  .cfi_escape 0x11, 0x06, 0x03                # offset_extended_sf rbp
  .cfi_remember_state
  movq %rsp, %rbp
  .cfi_def_cfa rbp, 24
  pushq $1
  pushq $2
  .cfi_escape 0x2e, 0x10                      # GNU_args_size
  call framestorm_odd_leaf
  .cfi_escape 0x0f, 0x05, 0x76, 0x08, 0x40, 0x22, 0x96   # CFA: rbp + 8 + 16
  call framestorm_odd_leaf
  .cfi_escape 0x0f, 0x06, 0x76, 0x00, 0x11, 0x68, 0x1c, 0x96   # CFA: rbp - (-24)
  .cfi_escape 0x16, 0x07, 0x01, 0x96          # val_expression rsp: CFA
  .cfi_escape 0x10, 0x06, 0x03, 0x11, 0x68, 0x22   # expression rbp: at CFA + -24
  .cfi_escape 0x10, 0x0c, 0x02, 0x77, 0x00    # expression r12
  call framestorm_odd_leaf
  .cfi_escape 0x14, 0x07, 0x00                # val_offset rsp: CFA
  .cfi_escape 0x2f, 0x06, 0x03                # GNU_negative_offset_extended rbp ...
  .cfi_escape 0x11, 0x06, 0x03                # ... which is CFA + 24, and is wrong: corrected
  .cfi_escape 0x09, 0x0d, 0x03                # register r13 in rbx
  .cfi_escape 0x07, 0x0e                      # undefined r14
  .cfi_escape 0x08, 0x0f                      # same_value r15
  call framestorm_odd_leaf
  addq $16, %rsp
  .cfi_restore_state
  popq %rbp
  .cfi_def_cfa_offset 16
  .cfi_restore rbp
  popq %rbx
  .cfi_def_cfa_offset 8
  .cfi_restore rbx
  ret
  .cfi_endproc
  .size framestorm_odd_directives, . - framestorm_odd_directives

  .type framestorm_odd_leaf, @function
framestorm_odd_leaf:
  .cfi_startproc
  movl $7, %eax
  ret
  .cfi_endproc
  .size framestorm_odd_leaf, . - framestorm_odd_leaf
)");

namespace framestorm::unwind_test {
namespace {

volatile int sink = 0;

FRAMESTORM_NOINLINE int leaf(int value) { return value * 3 + sink; }

FRAMESTORM_NOINLINE int with_red_zone(int value) {
  volatile int locals[4] = {value, value + 1, value + 2, value + 3};
  return locals[value & 3];
}

FRAMESTORM_NOINLINE int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h,
                                       int i) {
  return leaf(a + b + c) + with_red_zone(d + e + f) + leaf(g - h - i);
}

FRAMESTORM_NOINLINE int large_frame(int value) {
  volatile char room[5000];
  room[value & 1023] = static_cast<char>(value);
  return many_arguments(value, 2, 3, 4, 5, 6, 7, 8, 9) + room[value & 1023];
}

FRAMESTORM_NOINLINE int aligned_frame(int value) {
  alignas(64) volatile int room[16];
  for (int i = 0; i < 16; ++i) room[i] = leaf(value + i);
  return room[value & 15];
}

FRAMESTORM_NOINLINE int dynamic_frame(int value) {
  auto* const room = static_cast<volatile int*>(alloca(64 + 16 * static_cast<size_t>(value & 7)));
  for (int i = 0; i < 4; ++i) room[i] = with_red_zone(value + i);
  return room[value & 3];
}

int compare(const void* left, const void* right) {
  const int a = *static_cast<const int*>(left);
  const int b = *static_cast<const int*>(right);
  return leaf(a) - leaf(b);
}

}  // namespace

FRAMESTORM_NOINLINE int call_chain(int depth) {
  if (depth == 0) return leaf(1);
  const int deeper = call_chain(depth - 1);
  return deeper + large_frame(depth) + aligned_frame(deeper) + dynamic_frame(deeper);
}

FRAMESTORM_NOINLINE int through_libc() {
  int numbers[40];
  for (int i = 0; i < 40; ++i) numbers[i] = (i * 17) % 41;
  std::qsort(numbers, 40, sizeof(int), compare);
  const int key = numbers[20];
  const void* found = std::bsearch(&key, numbers, 40, sizeof(int), compare);
  char text[200];
  const int length = std::snprintf(text, sizeof text, "%d %s %.3f", numbers[3],
                                   found == nullptr ? "none" : "some", numbers[7] / 3.0);
  return length + static_cast<int>(std::strlen(text)) + std::atoi(text);
}

}  // namespace framestorm::unwind_test
