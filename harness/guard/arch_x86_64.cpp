#include "harness/guard/arch.h"

#if !defined(__x86_64__)
#error "harness/guard: add arch_<machine>.cpp with the functions of arch.h and the dl* stubs below"
#endif

#include <signal.h>

#include <iterator>

namespace framestorm::arch {

static_assert(offsetof(RecoveryPoint, callee_saved) == 0);
static_assert(offsetof(RecoveryPoint, sp) == 48);
static_assert(offsetof(RecoveryPoint, vector_control) == 56);
static_assert(offsetof(RecoveryPoint, float_control) == 60);

// callee_saved: rbx rbp r12 r13 r14 r15. The undefined return address in the unwind information
// makes this the outermost frame for every unwinder.
asm(R"(
  .text
  .p2align 4
  .globl framestorm_run_recoverable
  .hidden framestorm_run_recoverable
  .type framestorm_run_recoverable, @function
framestorm_run_recoverable:
  .cfi_startproc
  .cfi_undefined rip
  pushq %rbp
  movq %rsp, %rbp
  pushq %rdi
  subq $8, %rsp
  movq %rbx, 0(%rdi)
  movq %rbp, 8(%rdi)
  movq %r12, 16(%rdi)
  movq %r13, 24(%rdi)
  movq %r14, 32(%rdi)
  movq %r15, 40(%rdi)
  stmxcsr 56(%rdi)
  fnstcw 60(%rdi)
  movq %rsp, 48(%rdi)
  movq %rsi, %rax
  movq %rdx, %rdi
  callq *%rax
  xorl %eax, %eax
  movq -8(%rbp), %rdi
framestorm_resumed:
  movq $0, 48(%rdi)
  movq %rbp, %rsp
  popq %rbp
  retq
  .cfi_endproc
  .size framestorm_run_recoverable, . - framestorm_run_recoverable

  .p2align 4
  .globl framestorm_resume
  .hidden framestorm_resume
  .type framestorm_resume, @function
framestorm_resume:
  movl %esi, %eax
  fninit
  fldcw 60(%rdi)
  ldmxcsr 56(%rdi)
  cld
  movq 0(%rdi), %rbx
  movq 8(%rdi), %rbp
  movq 16(%rdi), %r12
  movq 24(%rdi), %r13
  movq 32(%rdi), %r14
  movq 40(%rdi), %r15
  movq 48(%rdi), %rsp
  jmp framestorm_resumed
  .size framestorm_resume, . - framestorm_resume

  .p2align 4
  .type framestorm_safe_load, @function
framestorm_safe_load:
framestorm_safe_load_access:
  movq (%rdi), %rax
  movq %rax, (%rsi)
  movl $1, %eax
  retq
framestorm_safe_load_failed:
  xorl %eax, %eax
  retq
  .size framestorm_safe_load, . - framestorm_safe_load
)");

// Functions of the dynamic linker look at their return address (RTLD_NEXT, $ORIGIN), so their
// interposers must be entered and left with the caller's: tell the interposer, then jump to the
// real one.
#define FRAMESTORM_DL_STUB(name)                                  \
  asm(".globl " #name "\n.type " #name ", @function\n" #name      \
      ":\n"                                                       \
      "  .cfi_startproc\n"                                        \
      "  pushq %rbp\n  .cfi_def_cfa_offset 16\n"                  \
      "  .cfi_offset rbp, -16\n"                                  \
      "  movq %rsp, %rbp\n  .cfi_def_cfa_register rbp\n"          \
      "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n"                \
      "  pushq %rcx\n"                                            \
      "  leaq 1f(%rip), %rdi\n  movq %rbp, %rsi\n"                \
      "  leaq framestorm_real_" #name                             \
      "(%rip), %rdx\n"                                            \
      "  callq framestorm_dl_call\n"                              \
      "  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"      \
      "  popq %rbp\n  .cfi_def_cfa rsp, 8\n"                      \
      "  jmpq *%rax\n  .cfi_endproc\n.size " #name ", . - " #name \
      "\n"                                                        \
      ".section .rodata\n1: .asciz \"" #name                      \
      "\"\n"                                                      \
      ".local framestorm_real_" #name "\n.comm framestorm_real_" #name ",8,8\n.text\n")
FRAMESTORM_DL_STUB(dlopen);
FRAMESTORM_DL_STUB(dlclose);
FRAMESTORM_DL_STUB(dlsym);
FRAMESTORM_DL_STUB(dladdr);
FRAMESTORM_DL_STUB(dl_iterate_phdr);
#undef FRAMESTORM_DL_STUB

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): symbols of the assembly above.
extern const char framestorm_resumed[] __attribute__((visibility("hidden")));
extern const char framestorm_safe_load_access[] __attribute__((visibility("hidden")));
extern const char framestorm_safe_load_failed[] __attribute__((visibility("hidden")));
// NOLINTEND(readability-identifier-naming)
int framestorm_safe_load(uintptr_t address, uintptr_t* value) noexcept;
}

namespace {

constexpr greg_t kDirectionFlag = 0x400;
constexpr greg_t kTrapFlag = 0x100;
constexpr greg_t kAlignmentCheckFlag = 0x40000;
constexpr uint32_t kMxcsrExceptions = 0x3f;
constexpr greg_t kPageFaultTrap = 14;
constexpr greg_t kInstructionFetch = 0x10;  // bit of the page fault's error code
constexpr greg_t kWrite = 0x2;

greg_t address_of(const char* label) { return reinterpret_cast<greg_t>(label); }

}  // namespace

void resume_from_handler(ucontext_t* context, RecoveryPoint* point, int end) {
  greg_t* registers = context->uc_mcontext.gregs;
  constexpr int kCalleeSaved[] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15};
  for (size_t i = 0; i < std::size(kCalleeSaved); ++i) {
    registers[kCalleeSaved[i]] = static_cast<greg_t>(point->callee_saved[i]);
  }
  registers[REG_RSP] = static_cast<greg_t>(point->sp);
  registers[REG_RDI] = reinterpret_cast<greg_t>(point);
  registers[REG_RAX] = end;
  registers[REG_RIP] = address_of(framestorm_resumed);
  registers[REG_EFL] &= ~(kDirectionFlag | kTrapFlag | kAlignmentCheckFlag);
  // A walk that died between MMX or x87 instructions must not leave a full register stack behind.
  if (fpregset_t floats = context->uc_mcontext.fpregs; floats != nullptr) {
    floats->mxcsr = point->vector_control & ~kMxcsrExceptions;
    floats->cwd = static_cast<uint16_t>(point->float_control);
    floats->swd = 0;
    floats->ftw = 0;
  }
}

uintptr_t pc_of(const ucontext_t* context) {
  return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
}
uintptr_t sp_of(const ucontext_t* context) {
  return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
}
uintptr_t fp_of(const ucontext_t* context) {
  return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RBP]);
}

std::span<const char* const> register_names() {
  static constexpr const char* kNames[] = {"r8",  "r9",  "r10", "r11", "r12", "r13",
                                           "r14", "r15", "rdi", "rsi", "rbp", "rbx",
                                           "rdx", "rax", "rcx", "rsp", "rip", "efl"};
  static_assert(REG_R8 == 0 && std::size(kNames) == REG_EFL + 1);
  return kNames;
}

void set_frame(greg_t* registers, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
  for (int i = 0; i < NGREG; ++i) {
    registers[i] = 0;
  }
  registers[REG_RIP] = static_cast<greg_t>(pc);
  registers[REG_RSP] = static_cast<greg_t>(sp);
  registers[REG_RBP] = static_cast<greg_t>(fp);
}

bool is_fetch_fault(const ucontext_t* context, int signo) {
  const greg_t* registers = context->uc_mcontext.gregs;
  return signo == SIGSEGV && registers[REG_TRAPNO] == kPageFaultTrap &&
         (registers[REG_ERR] & kInstructionFetch) != 0;
}

bool is_write_fault(const ucontext_t* context, int signo) {
  const greg_t* registers = context->uc_mcontext.gregs;
  return signo == SIGSEGV && registers[REG_TRAPNO] == kPageFaultTrap &&
         (registers[REG_ERR] & kWrite) != 0;
}

bool safe_load(uintptr_t address, uintptr_t* value) {
  return framestorm_safe_load(address, value) != 0;
}

bool fix_up_safe_load(ucontext_t* context) {
  greg_t& pc = context->uc_mcontext.gregs[REG_RIP];
  if (pc != address_of(framestorm_safe_load_access)) {
    return false;
  }
  pc = address_of(framestorm_safe_load_failed);
  return true;
}

}  // namespace framestorm::arch
