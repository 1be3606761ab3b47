#if !defined(__x86_64__)
#error "add arch_<architecture>.cpp: instructions and interpreted frames of this architecture"
#endif

#include "harness/input/input.h"
#include "harness/stepping/arch.h"
#include "harness/victim/context.h"

asm(R"(
  .text
  .p2align 4
  .local framestorm_trampoline
framestorm_trampoline:
  int3
  ud2
)");
// NOLINTNEXTLINE(modernize-avoid-c-arrays,readability-identifier-naming): a label
extern "C" const char framestorm_trampoline[];

namespace framestorm::stepping {
namespace {

bool is_prefix(uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return (byte & 0xf0) == 0x40;  // REX
  }
}

}  // namespace

const size_t kLongestInstruction = 15;
// Down to the word of the expression stack's bottom: frame::interpreter_frame_initial_sp_offset.
const size_t kInterpretedFrame = 9 * sizeof(uintptr_t);

Flow flow_at(uintptr_t pc) {
  const auto* code = reinterpret_cast<const uint8_t*>(pc);
  while (is_prefix(*code)) ++code;
  switch (*code) {
    case 0xe8:
      return Flow::call;
    case 0xc2:
    case 0xc3:
      return Flow::ret;
    case 0xff:
      return ((code[1] >> 3) & 7) == 2 ? Flow::call : Flow::other;
    default:
      return Flow::other;
  }
}

Registers registers_of(const ucontext_t& context) {
  const auto& from = context.uc_mcontext.gregs;
  return {.pc = static_cast<uintptr_t>(from[REG_RIP]),
          .sp = static_cast<uintptr_t>(from[REG_RSP]),
          .fp = static_cast<uintptr_t>(from[REG_RBP]),
          .bcp = static_cast<uintptr_t>(from[REG_R13]),
          .method = static_cast<uintptr_t>(from[REG_RBX])};
}

InterpretedFrame interpreted_frame(uintptr_t fp) {
  const auto word = [fp](ptrdiff_t index) { return reinterpret_cast<const uintptr_t*>(fp)[index]; };
  return {.caller_fp = word(0),
          .return_address = word(1),
          .return_slot = fp + sizeof(uintptr_t),
          .method = reinterpret_cast<const void*>(word(-3)),
          .bcp = word(-8)};
}

uintptr_t deopt_handler_begin(uintptr_t entry) {
  constexpr uint8_t kJump = 0xeb;
  const auto* code = reinterpret_cast<const uint8_t*>(entry);
  const auto distance = static_cast<int8_t>(code[1]);
  return code[0] == kJump && distance < 0 ? entry + 2 + static_cast<uintptr_t>(distance) : entry;
}

uintptr_t trampoline() { return reinterpret_cast<uintptr_t>(framestorm_trampoline); }

bool is_trampoline_trap(uintptr_t pc) { return pc == trampoline() + 1; }

}  // namespace framestorm::stepping
