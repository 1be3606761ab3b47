// Walks of a stack that is made word by word, and that no thread of the VM has: some of it cannot be read.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"

// A function a page. What calls at the end of one returns to the next.
asm(R"(
  .text
  .balign 4096
  .globl framestorm_page_ends_in_call
  .type framestorm_page_ends_in_call, @function
framestorm_page_ends_in_call:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  .fill 4096 - 4 - 5, 1, 0x90
  call framestorm_page_ends_in_call
  .cfi_endproc
  .size framestorm_page_ends_in_call, . - framestorm_page_ends_in_call

  .globl framestorm_page_ends_in_nop
  .type framestorm_page_ends_in_nop, @function
framestorm_page_ends_in_nop:
  .cfi_startproc
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  .fill 4096 - 4, 1, 0x90
  .cfi_endproc
  .size framestorm_page_ends_in_nop, . - framestorm_page_ends_in_nop

  .globl framestorm_page_of_nops
  .type framestorm_page_of_nops, @function
framestorm_page_of_nops:
  .cfi_startproc
  .fill 4096, 1, 0x90
  .cfi_endproc
  .size framestorm_page_of_nops, . - framestorm_page_of_nops
)");
extern "C" {
extern char framestorm_page_ends_in_call, framestorm_page_ends_in_nop, framestorm_page_of_nops;
}

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using jvm_test::at_end_of_handler;

class FakeStackTest : public IteratorTest {
 protected:
  static constexpr size_t kPage = 4096;
  struct Walked {
    std::vector<ASGST_Frame> frames;
    int end = 1;
  };

  // The frames are of code that the victim is in.
  void begin(ScenarioId scenario) {
    IteratorTest::begin(scenario);
    ASSERT_FALSE(HasFatalFailure());
    const std::vector<ASGST_Frame> frames = all(ASGST_INCLUDE_NON_JAVA_FRAMES);
    const auto interpreted = std::ranges::find(frames, 0, &ASGST_Frame::comp_level);
    const CodeMap& codes = session().jvm().code_map();
    const auto c = std::ranges::find_if(
        frames, [&](const auto& frame) { return !codes.in_code_cache(word(frame.pc)); });
    ASSERT_LT(interpreted, c);
    ASSERT_LT(c, frames.end());
    top_ = frames.front();
    interpreted_ = *interpreted;
    into_java_pc_ = word(c[-1].pc);
    c_pc_ = word(c->pc);
    call_stub_pc_ =
        read_at<void*>(structs().static_address("StubRoutines", "_call_stub_return_address"));
    auto* const pages = static_cast<char*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
    hole_ = reinterpret_cast<uintptr_t*>(pages + kPage);
    above_ = reinterpret_cast<uintptr_t*>(pages + 2 * kPage);
  }

  // The stack is empty again afterwards.
  Walked walk(const ASGST_Frame& from) {
    Walked walked;
    const auto handler = [&](ASGST_Iterator* it) {
      walked.frames = rest(it);
      walked.end = state_(it);
    };
    EXPECT_EQ(run_from(from, handler, ASGST_INCLUDE_NON_JAVA_THREADS), ASGST_CPP_TRACE);
    std::memset(hole_ - kPage / sizeof(*hole_), 0, kPage);
    std::memset(above_, 0, kPage);
    return walked;
  }
  void expect_end(int end, const void* last_sp, const ASGST_Frame& from, const char* what) {
    const Walked walked = walk(from);
    EXPECT_EQ(walked.end, end) << what;
    ASSERT_FALSE(walked.frames.empty()) << what;
    EXPECT_EQ(walked.frames.back().sp, last_sp) << what;
  }

  // A frame of the victim's, but for its caller's.
  ASGST_Frame interpreted(uintptr_t* fp, uintptr_t* sender_sp) {
    constexpr size_t kFixed = 8;  // below fp
    std::copy_n(static_cast<uintptr_t*>(interpreted_.fp) - kFixed, kFixed, fp - kFixed);
    fp[-1] = word(sender_sp);
    return {.pc = interpreted_.pc, .sp = fp - 2 * kFixed, .fp = fp};
  }
  // A call into Java's.
  ASGST_Frame entry(uintptr_t* fp, uintptr_t* wrapper) {
    fp[-6] = word(wrapper);
    return {.pc = call_stub_pc_, .sp = fp - 12, .fp = fp};
  }
  // Where a call's wrapper says which Java frame was the last one: words from its beginning.
  size_t anchor() {
    return structs().required_offset("JavaCallWrapper", "_anchor") / sizeof(uintptr_t);
  }
  // Null where there are no such bytes.
  uint8_t* find_in_interpreter(std::initializer_list<uint8_t> bytes) {
    for (const CodeEntry& code : session().jvm().code_map().entries()) {
      auto* const end = reinterpret_cast<uint8_t*>(code.end);
      auto* const at =
          std::search(reinterpret_cast<uint8_t*>(code.begin), end, bytes.begin(), bytes.end());
      if (code.kind == CodeKind::codelet && at != end) return at;
    }
    return nullptr;
  }
  const VmStructs& structs() { return session().jvm().structs(); }
  static uintptr_t word(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

  ASGST_Frame top_ = {}, interpreted_ = {};
  uintptr_t c_pc_ = 0;
  uintptr_t into_java_pc_ = 0;  // of what that has called
  void* call_stub_pc_ = nullptr;
  // A page that cannot be read, and one behind it that can be, as the one before it.
  uintptr_t* hole_ = nullptr;
  uintptr_t* above_ = nullptr;
};

TEST_F(FakeStackTest, AFrameWhoseWordsCannotBeReadHasNoCaller) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  const ASGST_Frame returns = interpreted(hole_ - 1, above_);
  expect_end(ASGST_STOPPED_BAD_FRAME, returns.sp, returns, "an interpreted frame's return address");

  ASSERT_GT(top_.comp_level, 0);
  const CodeEntry* const code = session().jvm().code_map().find(word(top_.pc));
  ASSERT_NE(code, nullptr);
  above_[0] = word(interpreted_.pc);
  void* const sp = above_ + 1 - code->frame_bytes / sizeof(*above_);
  expect_end(ASGST_STOPPED_BAD_STACK, sp, {.pc = top_.pc, .sp = sp}, "a compiled frame's link");

  uintptr_t* const at_hole = hole_ - 2 - anchor();
  const ASGST_Frame calls = entry(at_hole - 8, at_hole);
  expect_end(ASGST_STOPPED_BAD_FRAME, calls.sp, calls, "the last Java frame's fp");

  const ASGST_Frame called = entry(hole_ - 1, above_);
  expect_end(ASGST_STOPPED_BAD_FRAME, called.sp, called, "a call's return address");

  uintptr_t* const upcall_sp = hole_ - 128;
  uintptr_t* const fp = upcall_sp - 16;
  const ASGST_Frame upcalled = interpreted(fp, upcall_sp);
  fp[0] = word(above_ - 1);
  fp[1] = into_java_pc_;
  above_[0] = c_pc_;
  expect_end(ASGST_STOPPED_BAD_FRAME, upcall_sp, upcalled, "an upcall's link");
}

TEST_F(FakeStackTest, AMethodHandlesLinkerHasNoFrameInTheInterpreter) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  const auto codes = session().jvm().code_map().entries();
  const auto compiled = std::ranges::find_if(codes, [](const CodeEntry& code) {
    return code.kind == CodeKind::nmethod && is_method_handle_intrinsic(code.name);
  });
  ASSERT_NE(compiled, codes.end());
  const auto linker = read_at<uintptr_t>(blob_of((*compiled).begin) +
                                         structs().required_offset("nmethod", "_method"));
  constexpr int kMethodSlot = -3;  // frame::interpreter_frame_method_offset
  uintptr_t* const fp = above_ + 32;
  const ASGST_Frame frame = interpreted(fp, above_ + 64);
  ASSERT_EQ(fp[kMethodSlot], word(interpreted_.method));
  EXPECT_EQ(walk(frame).frames.size(), 1U);

  interpreted(fp, above_ + 64);
  fp[kMethodSlot] = linker;
  const Walked walked = walk(frame);
  EXPECT_EQ(walked.frames.size(), 0U);
  EXPECT_EQ(walked.end, ASGST_STOPPED_BAD_FRAME);
}

TEST_F(FakeStackTest, CFramesOfACallIntoJavaEndBelowTheLastJavaFrame) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  uintptr_t* const fp = above_ + 32;
  uintptr_t* const wrapper = fp + 8;
  const ASGST_Frame last = interpreted(wrapper + 64, above_);
  fp[1] = c_pc_;
  wrapper[anchor()] = word(fp + 2);
  wrapper[anchor() + 1] = word(last.pc);
  wrapper[anchor() + 2] = word(last.fp);
  const std::vector<ASGST_Frame> frames = walk(entry(fp, wrapper)).frames;
  ASSERT_GT(frames.size(), 1U);
  EXPECT_EQ(frames[1].method, interpreted_.method);
  EXPECT_EQ(frames[1].sp, fp + 2);
}

TEST_F(FakeStackTest, AnUpcallsFrameMayBeginWithItsLink) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  uintptr_t* const fp = hole_ - 16;
  const ASGST_Frame upcalled = interpreted(fp, above_);
  fp[0] = word(above_);
  fp[1] = into_java_pc_;
  above_[1] = c_pc_;
  const std::vector<ASGST_Frame> frames = walk(upcalled).frames;
  ASSERT_GT(frames.size(), 2U);
  EXPECT_EQ(word(frames[1].pc), into_java_pc_);
  EXPECT_EQ(word(frames[2].pc), c_pc_);
}

TEST_F(FakeStackTest, WhereCodeCannotBeReadItMayHaveCalled) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  for (const auto& [pc, unreadable] :
       {std::pair{&framestorm_page_ends_in_nop, &framestorm_page_ends_in_call},
        std::pair{&framestorm_page_of_nops, &framestorm_page_of_nops}}) {
    uintptr_t* const caller_sp = above_ + 4;
    caller_sp[-1] = c_pc_;
    ASSERT_EQ(mprotect(unreadable, kPage, PROT_NONE), 0);
    const std::vector<ASGST_Frame> frames = walk({.pc = pc, .sp = above_}).frames;
    ASSERT_EQ(mprotect(unreadable, kPage, PROT_READ | PROT_EXEC), 0);
    ASSERT_GT(frames.size(), 1U);
    EXPECT_EQ(word(frames[1].pc), c_pc_);
    EXPECT_EQ(frames[1].sp, caller_sp);
  }
}

// C2's keep sp in a register, then on top of what they push. Here one begins right behind the prologue.
TEST_F(FakeStackTest, ASearchInStringsIsAboveItsFramesCaller) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(top_.comp_level, 4);
  const CodeEntry* const code = session().jvm().code_map().find(word(top_.pc));
  ASSERT_NE(code, nullptr);
  const auto keeps_and_pushes =
      std::to_array<uint8_t>({0x48, 0x8b, 0xcc, 0x48, 0x83, 0xec, 0x30, 0x51});
  constexpr size_t kKeeps = 3,
                   kPushed = 7;  // bytes of mov rcx, rsp; words of sub rsp, 48; push rcx
  auto* const search = reinterpret_cast<uint8_t*>(code->frame_complete);
  const Poke instructions(static_cast<void*>(search), keeps_and_pushes);

  const ASGST_Frame caller = interpreted(above_ + 256, above_ + 512);
  uintptr_t* const kept = above_ + kPushed;
  uintptr_t* const caller_sp = kept + code->frame_bytes / sizeof(*kept);
  above_[0] = word(kept);
  caller_sp[-2] = word(caller.fp);
  caller_sp[-1] = word(caller.pc);
  const Walked pushed = walk({.pc = search + keeps_and_pushes.size(), .sp = above_});

  // With so large a frame that sp can be read, and the return address, but not the link.
  constexpr int kLarge = 600;
  const Poke frame_size(blob_of(code->begin) + structs().required_offset("CodeBlob", "_frame_size"),
                        kLarge);
  above_[0] = word(call_stub_pc_);
  const Walked unlinked = walk({.pc = search + kKeeps, .sp = above_ + 1 - kLarge});
  ASSERT_GT(pushed.frames.size(), 1U);
  EXPECT_EQ(pushed.frames[1].sp, caller_sp);
  EXPECT_EQ(pushed.frames[1].method, interpreted_.method);
  EXPECT_EQ(unlinked.frames.size(), 1U);
  EXPECT_EQ(unlinked.end, ASGST_STOPPED_BAD_STACK);
}

// Where a signal has interrupted the entry of Math.sin as it returns: the caller's sp is in a register.
TEST_F(FakeStackTest, OfAContextThatIsPartlyUnreadableTheRestIsUsed) {
  begin(ScenarioId::ffi_upcall);
  ASSERT_FALSE(HasFatalFailure());
  const uint8_t* const pop =
      find_in_interpreter({0x58, 0x49, 0x8b, 0xe5, 0xff, 0xe0});  // pop rax; mov rsp, r13; jmp rax
  ASSERT_NE(pop, nullptr);
  const size_t readable = offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]);
  ucontext_t context;
  std::memset(&context, 0, sizeof(context));
  const ASGST_Frame caller = interpreted(above_ + 256, above_ + 512);
  set_register(&context, Register::pc, word(pop + 1));
  set_register(&context, Register::sp, word(above_ + 230));
  set_register(&context, Register::fp, word(caller.fp));
  context.uc_mcontext.gregs[REG_RAX] = static_cast<greg_t>(word(caller.pc));
  std::memcpy(above_, reinterpret_cast<char*>(&context) + readable, sizeof(context) - readable);
  ucontext_t handler;
  at_end_of_handler(victim(scenario_).slot->context, &handler);
  const ASGST_Frame trampoline = {.pc = registers_of(handler).pc,
                                  .sp = reinterpret_cast<char*>(above_) - readable};
  const std::vector<ASGST_Frame> frames = walk(trampoline).frames;
  ASSERT_GT(frames.size(), 1U);
  EXPECT_EQ(frames[1].method, interpreted_.method);
}

// Else a walk need not end. The interpreter seems to have called where it has left its frame: the byte of a call is
// one of how far away a function is, by chance.
TEST_F(FakeStackTest, OnlyTheEntryOfAContinuationMayBeWhereItsCalleeWas) {
  begin(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  uint8_t* const hlt =
      find_in_interpreter({0xf4, 0xc9, 0x41, 0xc6, 0x87});  // hlt; leave; mov [r15 + ..], ..
  ASSERT_NE(hlt, nullptr);
  const auto* const entry =
      read_at<const uint8_t*>(structs().static_address("ContinuationEntry", "_return_pc"));
  const auto walk_below = [&](const uint8_t* caller) {
    uintptr_t* const sp = above_ + 16;
    const ASGST_Frame callee = interpreted(hole_ - 16, sp);
    auto* const fp = static_cast<uintptr_t*>(callee.fp);
    fp[1] = word(hlt + 2);
    // Below sp, as that frame has left it.
    sp[-2] = word(sp);
    sp[-1] = fp[0] = word(above_);
    sp[0] = word(caller);
    return walk(callee);
  };
  const Poke call(hlt - 3, uint8_t{0xe8});
  const Walked below_entry = walk_below(entry);
  const Walked below_another = walk_below(entry + 1);
  ASSERT_GT(below_entry.frames.size(), 1U);
  EXPECT_EQ(below_entry.frames[1].pc, entry);
  EXPECT_EQ(below_another.frames.size(), 1U);
  EXPECT_EQ(below_another.end, ASGST_STOPPED_BAD_STACK);
}

}  // namespace
}  // namespace framestorm
