#if !defined(__x86_64__)
#error "add untabled_<architecture>.cpp"
#endif

#include "harness/victim/untabled.h"

// No .cfi directive: the assembler makes no table.
asm(R"(
  .text
  .globl framestorm_untabled, framestorm_untabled_end
  .hidden framestorm_untabled, framestorm_untabled_end
  .type framestorm_untabled, @function
framestorm_untabled:
  pushq %rbp
  movq %rsp, %rbp
  call *%rdi
  popq %rbp
  ret
framestorm_untabled_end:
  .size framestorm_untabled, .-framestorm_untabled
)");

extern "C" {
void framestorm_untabled(void (*function)());
extern const char framestorm_untabled_end[];  // NOLINT(readability-identifier-naming): a label
}

namespace framestorm {

const int kDwarfFramePointer = 6;  // System V ABI

void call_untabled(void (*function)()) { framestorm_untabled(function); }

bool is_untabled(uintptr_t pc) {
  return pc >= reinterpret_cast<uintptr_t>(&framestorm_untabled) &&
         pc < reinterpret_cast<uintptr_t>(framestorm_untabled_end);
}

}  // namespace framestorm
