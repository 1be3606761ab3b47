// What follows a call that never returns, and what only looks like a call or the end of a frame.
#include <algorithm>
#include <array>
#include <csignal>
#include <functional>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"

// Functions that end in a call that never returns, with what they are given on top of the stack; right behind
// each stands another one. They tell `frame_told` sp, fp and pc: as a walk finds them from what was called,
// or as they are entered. And code that stands behind what is no call, but has bytes of one.
asm(R"(
  .text
  .type framestorm_never_returns, @function
framestorm_never_returns:
  .cfi_startproc
  leaq 8(%rsp), %rsi
  movq %rbp, %rdx
  movq (%rsp), %rcx
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call framestorm_tell_frame
  addq $40, %rsp
  ret
  .cfi_endproc
  .size framestorm_never_returns, . - framestorm_never_returns

  .globl framestorm_end_in_call
  .type framestorm_end_in_call, @function
framestorm_end_in_call:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  movq %rdi, (%rsp)
  call framestorm_never_returns
  .cfi_endproc
  .size framestorm_end_in_call, . - framestorm_end_in_call

  .globl framestorm_enter_behind_call
  .type framestorm_enter_behind_call, @function
framestorm_enter_behind_call:
  .cfi_startproc
  movq %rsp, %rsi
  movq %rbp, %rdx
  leaq framestorm_enter_behind_call(%rip), %rcx
  jmp framestorm_tell_frame
  .cfi_endproc
  .size framestorm_enter_behind_call, . - framestorm_enter_behind_call

  .globl framestorm_end_in_call_by_register
  .type framestorm_end_in_call_by_register, @function
framestorm_end_in_call_by_register:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  movq %rdi, (%rsp)
  leaq framestorm_never_returns(%rip), %rax
  call *%rax
  .cfi_endproc
  .size framestorm_end_in_call_by_register, . - framestorm_end_in_call_by_register

  .type framestorm_behind_no_call, @function
framestorm_behind_no_call:
  .cfi_startproc
  .fill 8, 1, 0x90
  jmp *%rax
  .globl framestorm_behind_jump
framestorm_behind_jump:
  .fill 8, 1, 0x90
  movq %rdx, %rax
  .globl framestorm_behind_move
framestorm_behind_move:
  .byte 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 # nop
  .globl framestorm_behind_nop
framestorm_behind_nop:
  ret
  .cfi_endproc
  .size framestorm_behind_no_call, . - framestorm_behind_no_call

  .globl framestorm_end_in_call_by_memory
  .type framestorm_end_in_call_by_memory, @function
framestorm_end_in_call_by_memory:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  movq %rdi, (%rsp)
  leaq framestorm_never_returns(%rip), %rax
  movq %rax, 16(%rsp)
  .byte 0xff, 0x94, 0x24, 16, 0, 0, 0 # call *16(%rsp), in as many bytes as there can be
  .cfi_endproc
  .size framestorm_end_in_call_by_memory, . - framestorm_end_in_call_by_memory

  .type framestorm_behind_call_by_memory, @function
framestorm_behind_call_by_memory:
  .cfi_startproc
  ret
  .cfi_endproc
  .size framestorm_behind_call_by_memory, . - framestorm_behind_call_by_memory

  .globl framestorm_enter_without_call
  .type framestorm_enter_without_call, @function
framestorm_enter_without_call:
  .cfi_startproc
  leaq framestorm_behind_nop(%rip), %rax
  pushq %rax
  .cfi_adjust_cfa_offset 8
  pushq %rax # to keep sp aligned
  .cfi_adjust_cfa_offset 8
  jmp framestorm_entered_without_call
  .cfi_endproc
  .size framestorm_enter_without_call, . - framestorm_enter_without_call

  .type framestorm_has_another_frame, @function
framestorm_has_another_frame:
  .cfi_startproc
  .cfi_adjust_cfa_offset 24
  .fill 8, 1, 0x90
  .cfi_endproc
  .size framestorm_has_another_frame, . - framestorm_has_another_frame

  .type framestorm_entered_without_call, @function
framestorm_entered_without_call:
  .cfi_startproc
  movq %rsp, %rsi
  movq %rbp, %rdx
  leaq framestorm_entered_without_call(%rip), %rcx
  jmp framestorm_tell_frame
  .cfi_endproc
  .size framestorm_entered_without_call, . - framestorm_entered_without_call
)");
static std::function<void(ASGST_Frame)> frame_told;
extern "C" {
void framestorm_end_in_call(const char* on_top);
void framestorm_end_in_call_by_register(const char* on_top);
void framestorm_end_in_call_by_memory(const char* on_top);
extern char framestorm_behind_jump, framestorm_behind_move, framestorm_behind_nop;
void framestorm_enter_behind_call(int signo);
void framestorm_enter_without_call();
__attribute__((used)) void framestorm_tell_frame(int /*signo*/, void* sp, void* fp, void* pc) {
  frame_told({.pc = pc, .sp = sp, .fp = fp});
}
}

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using iterator_test::same_place;

TEST_F(IteratorTest, AFunctionBehindACallThatNeverReturnsHasItsOwnCaller) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const int options = ASGST_INCLUDE_NON_JAVA_THREADS | ASGST_INCLUDE_NON_JAVA_FRAMES;
  std::vector<ASGST_Frame> frames;
  size_t words = 0;  // from sp to where the caller's sp is
  frame_told = [&](ASGST_Frame from) {
    run_from(from, [&](ASGST_Iterator* it) { frames = rest(it); }, options);
    ASSERT_GT(frames.size(), 2U);
    const auto* const sp = static_cast<void* const*>(from.sp);
    EXPECT_EQ(frames[1].pc, sp[words - 1]);
    EXPECT_EQ(frames[1].sp, sp + words);
  };
  words = 1;
  framestorm_enter_behind_call(0);
  // As makecontext does: what it returns to has called nothing.
  framestorm_enter_without_call();
  // Its caller is the trampoline that ends a signal's handler.
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = framestorm_enter_behind_call;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  raise(SIGUSR1);
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  words = 4;
  for (const auto end_in_call : {&framestorm_end_in_call, &framestorm_end_in_call_by_register,
                                 &framestorm_end_in_call_by_memory}) {
    for (const char* const on_top : {static_cast<char*>(nullptr), &framestorm_behind_jump,
                                     &framestorm_behind_move, &framestorm_behind_nop}) {
      end_in_call(on_top);
    }
  }
  frame_told = nullptr;
}

// Behind a call that never returns may stand what a poll jumps to, the frame gone. Where it could be either,
// it is neither; else it is what would have a caller.
TEST_F(IteratorTest, APollBehindACallThatNeverReturnsIsNotTakenForAFrame) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  auto* const slot = static_cast<uintptr_t*>(callers.front().sp) - 1;
  const CodeMap& codes = session().jvm().code_map();
  const CodeEntry* const code_of_caller =
      codes.find(reinterpret_cast<uintptr_t>(callers.front().pc));
  ASSERT_NE(code_of_caller, nullptr);
  const uint8_t load_pc[] = {0x49, 0xba};  // mov r10, ..
  size_t count = 0;
  for (const CodeEntry& code : codes.entries()) {
    if (code.kind != CodeKind::nmethod || code.frame_bytes < 4 * sizeof(*slot)) continue;
    const auto* const end = reinterpret_cast<const uint8_t*>(code.end);
    for (const auto* at = reinterpret_cast<const uint8_t*>(code.begin) + 5;
         (at = std::search(at, end, std::begin(load_pc), std::end(load_pc))) != end; ++at) {
      const uint8_t call = 0xe8, store[] = {0x4d, 0x89, 0x97};
      if (at[-5] != call || !std::equal(std::begin(store), std::end(store), at + 10)) continue;
      ++count;
      // Frames of both that are whole, one above the other.
      uintptr_t* const other = slot + code.frame_bytes / sizeof(*slot) - 1;
      uintptr_t* const next = other + code_of_caller->frame_bytes / sizeof(*slot);
      const auto pc = reinterpret_cast<uintptr_t>(callers.front().pc);
      const Poke poked_slot(slot, pc), poked_other(other, pc);
      const ASGST_Frame from = {
          .pc = const_cast<uint8_t*>(at), .sp = slot, .fp = callers.front().fp};
      const auto sp_of_caller = [&]() -> void* {
        std::vector<ASGST_Frame> frames;
        run_from(from, [&](ASGST_Iterator* it) { frames = rest(it); });
        const auto caller = std::ranges::find_if(
            frames, [&](const ASGST_Frame& frame) { return frame.sp != slot; });
        return caller == frames.end() ? nullptr : caller->sp;
      };
      const std::string where =
          code.name + " +" + std::to_string(reinterpret_cast<uintptr_t>(at) - code.begin);
      {
        const Poke poked_next(next, reinterpret_cast<uintptr_t>(callers.back().pc));
        EXPECT_NE(sp_of_caller(), other + 1) << where << ", either";
        *slot = 0;
        EXPECT_EQ(sp_of_caller(), other + 1) << where << ", whole";
      }
      *slot = pc;
      *other = 0;
      EXPECT_EQ(sp_of_caller(), slot + 1) << where << ", a poll";
    }
  }
  EXPECT_GT(count, 0U);
}

// Bytes of an instruction before it may be those of leave.
TEST_F(IteratorTest, AJumpInAStubLeavesItsFrameOnlyBehindLeave) {
  begin(ScenarioId::exception_unwind);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> callers = compiled_callers();
  ASSERT_GT(callers.size(), 2U);
  auto** const sp = static_cast<void**>(callers.front().sp);
  constexpr ptrdiff_t kWords = 5;
  const Poke words(
      static_cast<void*>(sp - kWords),
      std::array<void*, kWords>{nullptr, nullptr, nullptr, callers.front().fp, callers.front().pc});
  size_t count = 0;
  for (const CodeEntry& stub : session().jvm().code_map().entries()) {
    const uint8_t begins[] = {0x55, 0x48, 0x8b, 0xec};  // push rbp; mov rbp, rsp
    const auto* const begin = reinterpret_cast<const uint8_t*>(stub.begin);
    const auto* const end = reinterpret_cast<const uint8_t*>(stub.end);
    if (stub.kind != CodeKind::stub || end - begin < 16 ||
        !std::equal(std::begin(begins), std::end(begins), begin)) {
      continue;
    }
    for (const auto* at = begin + sizeof(begins); at + 6 < end; ++at) {
      // vmulsd xmm1, xmm1, xmm1; jmp
      const uint8_t multiply[] = {0xc5, 0xf3, 0x59, 0xc9, 0xe9};
      if (!std::equal(std::begin(multiply), std::end(multiply), at)) continue;
      ucontext_t context = *victim(scenario_).slot->context;
      set_register(&context, Register::pc, reinterpret_cast<uintptr_t>(at + 4));
      set_register(&context, Register::sp, reinterpret_cast<uintptr_t>(sp - kWords));
      set_register(&context, Register::fp, reinterpret_cast<uintptr_t>(sp - 2));
      std::vector<ASGST_Frame> frames;
      run_context(&context, [&](ASGST_Iterator* it) { frames = rest(it); });
      EXPECT_TRUE(std::ranges::equal(frames, callers, same_place))
          << stub.name << " +" << at + 4 - begin << ": " << frames.size() << " frames";
      ++count;
    }
  }
  EXPECT_GT(count, 0U);
}

}  // namespace
}  // namespace framestorm
