#if !defined(__x86_64__)
#error \
    "add context_<architecture>.cpp: registers, red zone and single-stepping of this architecture"
#endif

#include <cstring>

#include "harness/victim/context.h"

namespace framestorm {
namespace {

constexpr greg_t kTrapFlag = 0x100;

constexpr int kRegisters[] = {
    REG_RIP, REG_RSP, REG_RBP, REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_EFL,
};
static_assert(std::size(kRegisters) == static_cast<size_t>(Register::count));

}  // namespace

uintptr_t get_register(const ucontext_t& context, Register reg) {
  return get_register(context.uc_mcontext.gregs, reg);
}

uintptr_t get_register(const greg_t (&registers)[NGREG], Register reg) {
  return static_cast<uintptr_t>(registers[kRegisters[static_cast<size_t>(reg)]]);
}

void set_register(ucontext_t* context, Register reg, uintptr_t value) {
  context->uc_mcontext.gregs[kRegisters[static_cast<size_t>(reg)]] = static_cast<greg_t>(value);
}

uintptr_t get_bytecode_pointer(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_R13]);
}

void copy_context(const ucontext_t& from, ucontext_t* to) {
  // The kernel's part of ucontext_t ends with a signal mask of 8 bytes; the rest is glibc's own
  // use.
  std::memcpy(static_cast<void*>(to), &from, offsetof(ucontext_t, uc_sigmask) + 8);
}

bool same_context(const ucontext_t& a, const ucontext_t& b) {
  return std::memcmp(static_cast<const void*>(&a), &b, offsetof(ucontext_t, uc_sigmask) + 8) == 0;
}

void set_single_step(ucontext_t* context, bool on) {
  auto& flags = context->uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | kTrapFlag : flags & ~kTrapFlag;
}

// Linux knows a single step by DR6. In a virtual machine that is empty now and then, and the step is
// called TRAP_BRKPT, as nothing else is in a context that is stepped: int3 is SI_KERNEL.
bool is_single_step(const siginfo_t& info, const ucontext_t& context) {
  return info.si_code == TRAP_TRACE ||
         (info.si_code == TRAP_BRKPT && (context.uc_mcontext.gregs[REG_EFL] & kTrapFlag) != 0);
}

void start_single_step() {
  // The red zone may be in use by the caller of this inlined code: step over it first.
  asm volatile(
      "lea -128(%%rsp), %%rsp\n\t"
      "pushfq\n\t"
      "orq $0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "lea 128(%%rsp), %%rsp" ::
          : "cc", "memory");
}

}  // namespace framestorm
