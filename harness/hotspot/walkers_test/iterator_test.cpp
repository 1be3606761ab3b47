// The iterators of profile2.h on live victims, call by call.
#include <jvmti.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <functional>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/blocked_signal.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"
#include "harness/victim/context.h"

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
extern const char framestorm_behind_jump, framestorm_behind_move, framestorm_behind_nop;
void framestorm_enter_behind_call(int signo);
void framestorm_enter_without_call();
__attribute__((used)) void framestorm_tell_frame(int /*signo*/, void* sp, void* fp, void* pc) {
  frame_told({.pc = pc, .sp = sp, .fp = fp});
}
}

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using iterator_test::same;
using iterator_test::same_place;
using jvm_test::at_end_of_handler;

TEST_F(IteratorTest, GivesTheFramesThatTheScenarioHas) {
  begin(ScenarioId::c2_inlined);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  ASSERT_GT(frames.size(), 2U);
  bool inlined = false;
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_NE(frames[i].method, nullptr);
    EXPECT_NE(frames[i].pc, nullptr);
    inlined = inlined || frames[i].type == ASGST_FRAME_JAVA_INLINED;
    if (i == 0) continue;
    if (frames[i - 1].type == ASGST_FRAME_JAVA_INLINED) {
      EXPECT_EQ(frames[i].sp, frames[i - 1].sp) << "an inlined frame is in the next one";
    } else {
      EXPECT_GT(frames[i].sp, frames[i - 1].sp);
    }
  }
  EXPECT_TRUE(inlined);
}

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
    for (const char* const on_top : {static_cast<const char*>(nullptr), &framestorm_behind_jump,
                                     &framestorm_behind_move, &framestorm_behind_nop}) {
      end_in_call(on_top);
    }
  }
  frame_told = nullptr;
}

TEST_F(IteratorTest, StateSaysWhatNextWillReturn) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const size_t count = all().size();
  std::vector<int> states;
  ASGST_Frame frame;
  run([&](ASGST_Iterator* it) {
    states.push_back(state_(it));
    while (next_(it, &frame) == 1) states.push_back(state_(it));
    states.push_back(next_(it, &frame));
  });
  ASSERT_EQ(states.size(), count + 2);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(states[i], 1);
  EXPECT_EQ(states[count], ASGST_NO_FRAME);
  EXPECT_EQ(states[count + 1], ASGST_NO_FRAME);
}

TEST_F(IteratorTest, RewindsToTheTop) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  std::vector<ASGST_Frame> at_the_end, in_the_middle;
  run([&](ASGST_Iterator* it) {
    rest(it);
    rewind_(it);
    at_the_end = rest(it);
    rewind_(it);
    ASGST_Frame frame;
    next_(it, &frame);
    state_(it);
    rewind_(it);
    in_the_middle = rest(it);
  });
  EXPECT_TRUE(same(at_the_end, frames));
  EXPECT_TRUE(same(in_the_middle, frames));
}

TEST_F(IteratorTest, NestedIteratorsAreApart) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  std::vector<ASGST_Frame> outer, inner;
  run([&](ASGST_Iterator* it) {
    ASGST_Frame frame;
    while (next_(it, &frame) == 1) {
      outer.push_back(frame);
      inner = all();
    }
  });
  EXPECT_TRUE(same(outer, frames));
  EXPECT_TRUE(same(inner, frames));
}

TEST_F(IteratorTest, AnIteratorEndsWithItsHandler) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  ASGST_Iterator* kept = nullptr;
  ASGST_Frame frame = all().front();
  run([&](ASGST_Iterator* it) { kept = it; });
  EXPECT_EQ(next_(kept, &frame), ASGST_INVALID_ITERATOR);
  EXPECT_EQ(state_(kept), ASGST_INVALID_ITERATOR);
  rewind_(kept);
  // Nor is it another one's, at the same place of the stack.
  int during_another = 0;
  run([&](ASGST_Iterator*) { during_another = next_(kept, &frame); });
  EXPECT_EQ(during_another, ASGST_INVALID_ITERATOR);
  EXPECT_EQ(frame.method, nullptr) << "the frame is cleared";
}

TEST_F(IteratorTest, HandlersMayLeaveByLongjmp) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  leave_by_longjmp(1000);  // more often than there are places for iterators
  EXPECT_TRUE(same(all(), frames));
}

// Places are taken from iterators that were left, never from one that is younger and open.
TEST_F(IteratorTest, AnOpenIteratorOutlivesOlderOnesThatWereLeft) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  leave_by_longjmp(1000);
  run([](ASGST_Iterator*) {});
  // The one free place is now that of the iterator before this one.
  int state = 0;
  run([&](ASGST_Iterator* it) {
    leave_by_longjmp(255);
    state = state_(it);
  });
  EXPECT_EQ(state, 1);
}

TEST_F(IteratorTest, BeyondTwoHundredAndFiftySixTheOldestEnds) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  int outermost = 0, next_outermost = 0;
  std::vector<ASGST_Iterator*> open;
  const std::function<void()> nest = [&] {
    run([&](ASGST_Iterator* it) {
      open.push_back(it);
      if (open.size() < 257) return nest();
      outermost = state_(open[0]);
      next_outermost = state_(open[1]);
    });
  };
  nest();
  EXPECT_EQ(outermost, ASGST_INVALID_ITERATOR);
  EXPECT_EQ(next_outermost, 1);
  EXPECT_FALSE(all().empty());
}

TEST_F(IteratorTest, NullsAreErrors) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  ASGST_Frame frame;
  EXPECT_EQ(next_(nullptr, &frame), ASGST_INVALID_ITERATOR);
  EXPECT_EQ(state_(nullptr), ASGST_NO_FRAME);
  rewind_(nullptr);
  EXPECT_EQ(next_(reinterpret_cast<ASGST_Iterator*>(0x1234), &frame), ASGST_INVALID_ITERATOR);
  int without_frame = 0;
  run([&](ASGST_Iterator* it) { without_frame = next_(it, nullptr); });
  EXPECT_EQ(without_frame, ASGST_INVALID_ARGUMENT);
  EXPECT_EQ(run_(victim(scenario_).slot->context, 0, nullptr, nullptr), ASGST_INVALID_ARGUMENT);
}

TEST_F(IteratorTest, MayEndBeforeTheFirstMethodWithBytecodes) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const ASGST_Frame first = all().front();
  ASGST_Frame frame = {};
  int result = -1, state = -1;
  run(
      [&](ASGST_Iterator* it) {
        state = state_(it);
        result = next_(it, &frame);
      },
      ASGST_END_ON_FIRST_JAVA_FRAME);
  EXPECT_EQ(state, ASGST_NO_FRAME);
  EXPECT_EQ(result, ASGST_NO_FRAME);
  EXPECT_EQ(frame.type, ASGST_FRAME_JAVA);
  EXPECT_EQ(frame.pc, first.pc);
  EXPECT_EQ(frame.sp, first.sp);
  EXPECT_EQ(frame.method, nullptr);
}

TEST_F(IteratorTest, EachPhysicalFrameStartsTheRest) {
  begin(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  ASSERT_GT(frames.size(), 3U);
  for (size_t i = 1; i < frames.size(); ++i) {
    if (frames[i - 1].type == ASGST_FRAME_JAVA_INLINED) continue;
    std::vector<ASGST_Frame> from_here;
    EXPECT_EQ(run_from(frames[i], [&](ASGST_Iterator* it) { from_here = rest(it); }),
              ASGST_JAVA_TRACE);
    EXPECT_TRUE(same(from_here, {frames.begin() + static_cast<ptrdiff_t>(i), frames.end()}))
        << "from frame " << i << ": " << from_here.size() << " frames";
  }
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

// What frames do not have of it is in the registers, which the handler's context on the stack has.
TEST_F(IteratorTest, AMethodThatIsEnteredIsThereBelowASignalHandler) {
  begin(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<ASGST_Frame> expected = all();
  ASSERT_GT(expected.size(), 3U);
  expected.front().bci = 0;
  ucontext_t& interrupted = *victim(scenario_).slot->context;
  // The method on top is entered by its caller, which has next to nothing on its expression stack.
  const ASGST_Frame caller = expected[1];
  const uintptr_t sp = reinterpret_cast<uintptr_t>(caller.fp) - 9 * sizeof(sp);
  const auto entry = read_at<uintptr_t>(
      expected.front().method, session().jvm().structs().required_offset("Method", "_i2i_entry"));
  const Poke as_it_was(&interrupted.uc_mcontext, interrupted.uc_mcontext);
  set_register(&interrupted, Register::pc, entry + 0x20);
  set_register(&interrupted, Register::sp, sp);
  set_register(&interrupted, Register::fp, reinterpret_cast<uintptr_t>(caller.fp));
  greg_t* const registers = interrupted.uc_mcontext.gregs;
  registers[REG_RBX] = reinterpret_cast<greg_t>(expected.front().method);
  registers[REG_R13] = static_cast<greg_t>(sp);
  registers[REG_RAX] = reinterpret_cast<greg_t>(caller.pc);
  ucontext_t handler;
  at_end_of_handler(&interrupted, &handler);
  std::vector<ASGST_Frame> by_context, by_frame;
  run_context(&handler, [&](ASGST_Iterator* it) { by_context = rest(it); });
  run_from(registers_of(handler), [&](ASGST_Iterator* it) { by_frame = rest(it); });
  EXPECT_TRUE(std::ranges::equal(by_context, expected, same_place)) << by_context.size();
  EXPECT_TRUE(std::ranges::equal(by_frame, expected, same_place)) << by_frame.size();
}

TEST_F(IteratorTest, AFrameOnNoStackIsRefused) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  bool called = false;
  const auto handler = [&](ASGST_Iterator*) { called = true; };
  ASGST_Frame frame = all().front();
  frame.sp = reinterpret_cast<void*>(4096);
  EXPECT_EQ(run_from(frame, handler), ASGST_NO_THREAD);
  frame = all().front();
  frame.pc = reinterpret_cast<void*>(4096);
  EXPECT_EQ(run_from(frame, handler), ASGST_NO_TOP_JAVA_FRAME);
  EXPECT_FALSE(called);
}

TEST_F(IteratorTest, AWalkThatStopsSaysWhere) {
  begin(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const auto frames = all();
  // The second frame's return address is no code.
  const Poke return_pc(static_cast<uintptr_t*>(frames[1].fp) + 1, uintptr_t{0x1000});
  std::vector<ASGST_Frame> seen;
  int end = 0;
  run([&](ASGST_Iterator* it) {
    seen = rest(it);
    end = state_(it);
  });
  EXPECT_EQ(seen.size(), 2U);
  EXPECT_EQ(end, ASGST_STOPPED_BAD_PC);
}

// As when a profiler's handler is called with what is no context.
TEST_F(IteratorTest, AContextThatCannotBeReadIsNone) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  constexpr size_t kPage = 4096;
  auto* const pages = static_cast<char*>(
      mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  bool called = false;
  const auto handler = [&](ASGST_Iterator*) { called = true; };
  ASSERT_EQ(mprotect(pages, kPage, PROT_NONE), 0);
  const size_t registers = offsetof(ucontext_t, uc_mcontext.gregs[REG_ERR]);
  EXPECT_EQ(run_context(pages + kPage - registers, handler), ASGST_NO_TOP_JAVA_FRAME)
      << "its beginning";
  ASSERT_EQ(mprotect(pages, kPage, PROT_READ), 0);
  ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
  EXPECT_EQ(run_context(pages + kPage, handler), ASGST_NO_TOP_JAVA_FRAME);
  EXPECT_EQ(run_context(pages + kPage - 128, handler), ASGST_NO_TOP_JAVA_FRAME) << "its end";
  EXPECT_EQ(run_context(reinterpret_cast<void*>(8), handler), ASGST_NO_TOP_JAVA_FRAME);
  EXPECT_FALSE(called);
  munmap(pages, 2 * kPage);
}

// The kernel kills who faults with the signal blocked, and walks fault: SafeFetch does.
TEST_F(IteratorTest, AHandlerThatBlocksFaultsIsToldSo) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  for (const int signal : {SIGSEGV, SIGBUS}) {
    const BlockedSignal blocked(signal);
    // A place of its own: what it is told once for each.
    EXPECT_EQ(run([](ASGST_Iterator*) {}), ASGST_FAULTS_BLOCKED);
    const ASGST_Frame nowhere = {};
    EXPECT_EQ(run_from(nowhere, [](ASGST_Iterator*) {}), ASGST_FAULTS_BLOCKED);
  }
  EXPECT_FALSE(all().empty());
}

// What functions that are called next have not set is this word.
[[gnu::noinline]] void fill_stack(void* word) {
  void* volatile below[512];
  for (void* volatile& each : below) each = word;
}

TEST_F(IteratorTest, TheThreadsStateAndTheCapabilities) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(capabilities_(), ASGST_REGISTER_QUEUE | ASGST_MARK_FRAME);
  {
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(),
                                           victim(scenario_).java_thread);
    EXPECT_TRUE(thread_state_() & JVMTI_THREAD_STATE_RUNNABLE);
  }
  {
    const ThreadIdentity::Scoped as_nobody(session().jvm().identity(), nullptr);
    EXPECT_EQ(thread_state_(), 0);
  }
  // Nor is a thread known before its stack is. A word that ends in zero also says that it is Java's.
  alignas(256) std::byte unknown[8192] = {};
  const ThreadIdentity::Scoped as_unknown(session().jvm().identity(), unknown);
  fill_stack(unknown);
  EXPECT_EQ(thread_state_(), 0);
}

}  // namespace
}  // namespace framestorm
