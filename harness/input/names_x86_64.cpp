// Register numbers are shared by all architectures, names are not.
#if !defined(__x86_64__)
#error "add names_<architecture>.cpp: its general registers, in the order of its victim/context"
#endif

#include "harness/input/input.h"

namespace framestorm {

std::string_view name_of(Register value) {
  static constexpr std::string_view kNames[] = {
      "pc", "sp", "fp",  "rax", "rbx", "rcx", "rdx", "rsi", "rdi",
      "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "flags",
  };
  return name_in(kNames, value);
}

}  // namespace framestorm
