// The iterators of profile2.h on live victims, call by call.
#include "profile2.h"

#include <jvmti.h>
#include <sys/mman.h>
#include <csetjmp>
#include <csignal>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "harness/executor/jvm_fixture.h"
#include "harness/victim/context.h"

// Two functions: one ends in a call that never returns, the other stands right behind it. Each tells the
// handler sp, fp and pc: as it is entered, and as a walk finds it from what was called.
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
  movq $0, (%rsp)
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
)");
extern "C" {
void framestorm_end_in_call(void* test);
void framestorm_enter_behind_call(void* test);
__attribute__((used)) void framestorm_tell_frame(void* test, void* sp, void* fp, void* pc) {
  (*static_cast<std::function<void(ASGST_Frame)>*>(test))({.pc = pc, .sp = sp, .fp = fp});
}
}

namespace framestorm {
namespace {

using jvm_test::at_end_of_handler;
using jvm_test::JvmTest;

bool same(const ASGST_Frame& a, const ASGST_Frame& b) {
  return a.type == b.type && a.comp_level == b.comp_level && a.bci == b.bci &&
         a.method == b.method && a.pc == b.pc && a.sp == b.sp && a.fp == b.fp;
}

bool same_place(const ASGST_Frame& a, const ASGST_Frame& b) {
  return a.method == b.method && a.bci == b.bci;
}

bool same(const std::vector<ASGST_Frame>& a, const std::vector<ASGST_Frame>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

class IteratorTest : public JvmTest {
 protected:
  using Handler = std::function<void(ASGST_Iterator*)>;

  // `first`: before the halt.
  void begin(ScenarioId scenario, const std::vector<std::string>& jvm_args = {},
             const std::function<void()>& first = {}) {
    start({scenario}, {}, jvm_args);
    ASSERT_FALSE(HasFatalFailure());
    if (first) first();
    ASSERT_FALSE(HasFatalFailure());
    find(&run_, "ASGST_RunWithIterator");
    find(&run_from_frame_, "ASGST_RunWithIteratorFromFrame");
    find(&next_, "ASGST_NextFrame");
    find(&rewind_, "ASGST_RewindIterator");
    find(&state_, "ASGST_State");
    find(&thread_state_, "ASGST_ThreadState");
    find(&capabilities_, "ASGST_Capabilities");
    ASSERT_FALSE(HasFatalFailure());
    scenario_ = scenario;
    halt_in_java(scenario);
  }

  // As the victim, from its context.
  int run(const Handler& handler, int options = 0) {
    return run_context(victim(scenario_).slot->context, handler, options);
  }
  int run_context(void* context, const Handler& handler, int options = 0) {
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(),
                                           victim(scenario_).java_thread);
    return run_(context, options, &call, const_cast<Handler*>(&handler));
  }
  int run_from(const ASGST_Frame& frame, const Handler& handler, int options = 0) {
    return run_from_frame_(frame.sp, frame.fp, frame.pc, options, &call,
                           const_cast<Handler*>(&handler));
  }
  std::vector<ASGST_Frame> rest(ASGST_Iterator* iterator) {
    std::vector<ASGST_Frame> frames;
    ASGST_Frame frame;
    while (next_(iterator, &frame) == 1) frames.push_back(frame);
    return frames;
  }
  static ASGST_Frame registers_of(const ucontext_t& context) {
    const auto pointer = [&](Register reg) {
      return reinterpret_cast<void*>(get_register(context, reg));
    };
    return {.pc = pointer(Register::pc), .sp = pointer(Register::sp), .fp = pointer(Register::fp)};
  }
  std::vector<ASGST_Frame> all(int options = 0) {
    std::vector<ASGST_Frame> frames;
    EXPECT_EQ(run([&](ASGST_Iterator* it) { frames = rest(it); }, options), ASGST_JAVA_TRACE);
    return frames;
  }

  // Of a halt at which the thread has not noted where its Java frames begin.
  std::vector<ASGST_Frame> compiled_callers() {
    constexpr int kTries = 200;  // on a busy machine few are
    for (int i = 0; i < kTries && !HasFatalFailure(); ++i) {
      halt_in_java(scenario_);
      if (read_at<uintptr_t>(victim(scenario_).java_thread,
                             session().jvm().layout().last_java_sp) != 0) {
        continue;
      }
      std::vector<ASGST_Frame> frames;
      run([&](ASGST_Iterator* it) { frames = rest(it); });
      const auto caller = std::ranges::find_if(frames, [&](const ASGST_Frame& frame) {
        return frame.sp != frames.front().sp && frame.comp_level > 0;
      });
      frames.erase(frames.begin(), caller);
      if (frames.size() > 2) return frames;
    }
    return {};
  }

  void leave_by_longjmp(int times) {
    // Around all of it: nothing that a longjmp passes may have a destructor.
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(),
                                           victim(scenario_).java_thread);
    const auto leave = [](ASGST_Iterator*, void* out) {
      std::longjmp(*static_cast<jmp_buf*>(out), 1);
    };
    for (volatile int i = 0; i < times; i = i + 1) {
      jmp_buf out;
      if (setjmp(out) == 0) run_(victim(scenario_).slot->context, 0, leave, &out);
    }
  }

  std::string method_of(const ASGST_Frame& frame) {
    const auto id = reinterpret_cast<decltype(&ASGST_MethodToJMethodID)>(
        session().jvm().symbol("ASGST_MethodToJMethodID"));
    const MethodInfo* const info = session().jvm().methods().find(id(frame.method));
    return info == nullptr ? "?" : info->name;
  }

  ScenarioId scenario_ = ScenarioId::count;
  decltype(&ASGST_RunWithIterator) run_ = nullptr;
  decltype(&ASGST_RunWithIteratorFromFrame) run_from_frame_ = nullptr;
  decltype(&ASGST_NextFrame) next_ = nullptr;
  decltype(&ASGST_RewindIterator) rewind_ = nullptr;
  decltype(&ASGST_State) state_ = nullptr;
  decltype(&ASGST_ThreadState) thread_state_ = nullptr;
  decltype(&ASGST_Capabilities) capabilities_ = nullptr;

 private:
  template <typename T>
  void find(T* function, const char* name) {
    *function = reinterpret_cast<T>(session().jvm().symbol(name));
    ASSERT_NE(*function, nullptr) << session().jvm().library_path() << " has no " << name
                                  << ": test with a JDK that `framestorm jdk build` made";
  }
  static void call(ASGST_Iterator* iterator, void* handler) {
    (*static_cast<const Handler*>(handler))(iterator);
  }
};

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
  std::function<void(ASGST_Frame)> walk = [&](ASGST_Frame from) {
    run_from(from, [&](ASGST_Iterator* it) { frames = rest(it); }, options);
    ASSERT_GT(frames.size(), 2U);
    const auto* const sp = static_cast<void* const*>(from.sp);
    EXPECT_EQ(frames[1].pc, sp[words - 1]);
    EXPECT_EQ(frames[1].sp, sp + words);
  };
  words = 1;
  framestorm_enter_behind_call(&walk);
  words = 4;
  framestorm_end_in_call(&walk);
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
// it is neither.
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
      const std::array<uintptr_t, 3> saved = {*slot, *other, *next};
      *slot = reinterpret_cast<uintptr_t>(callers.front().pc);
      *other = *slot;
      *next = reinterpret_cast<uintptr_t>(callers.back().pc);
      std::vector<ASGST_Frame> frames;
      const ASGST_Frame from = {
          .pc = const_cast<uint8_t*>(at), .sp = slot, .fp = callers.front().fp};
      run_from(from, [&](ASGST_Iterator* it) { frames = rest(it); });
      const bool skips = frames.size() > 1 && frames[1].sp == other + 1;
      *slot = saved[0];
      *other = saved[1];
      *next = saved[2];
      EXPECT_FALSE(skips) << code.name << " +" << reinterpret_cast<uintptr_t>(at) - code.begin;
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
  const std::vector<void*> saved(sp - kWords, sp);
  std::fill(sp - kWords, sp, nullptr);
  sp[-1] = callers.front().pc;
  sp[-2] = callers.front().fp;
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
  std::ranges::copy(saved, sp - kWords);
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
  gregset_t saved;
  std::memcpy(&saved, &interrupted.uc_mcontext.gregs, sizeof(saved));
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
  std::memcpy(&interrupted.uc_mcontext.gregs, &saved, sizeof(saved));
  EXPECT_TRUE(std::ranges::equal(by_context, expected, same_place)) << by_context.size();
  EXPECT_TRUE(std::ranges::equal(by_frame, expected, same_place)) << by_frame.size();
}

// C2's search in strings (String.indexOf), called by a halted thread that is interpreted and executed by it,
// one instruction after the other, far below its frames. Each is walked.
class StringSearchTest : public IteratorTest {
 protected:
  struct Searched {
    size_t length, sought;       // characters
    bool at_end, sought_at_end;  // of a page, behind which nothing can be read
  };
  static constexpr size_t kPage = 4096;

  void SetUp() override {
    begin(ScenarioId::interpreted_recursion, {"-XX:-BackgroundCompilation"}, [this] { compile(); });
    ASSERT_FALSE(HasFatalFailure());
    callers_ = all();
    ASSERT_GT(callers_.size(), 3U);
    callers_.erase(callers_.begin());
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.tier == 4 && entry.name.find("String.indexOf") != std::string::npos) code_ = &entry;
    }
    ASSERT_NE(code_, nullptr) << "C2 has not compiled it";
    const uint8_t keep[] = {0x48, 0x8b, 0xcc};  // mov rcx, rsp
    const auto* const end = reinterpret_cast<const uint8_t*>(code_->end);
    for (const auto* at = reinterpret_cast<const uint8_t*>(code_->begin);
         (at = std::search(at, end, std::begin(keep), std::end(keep))) != end; ++at) {
      begins_.push_back(reinterpret_cast<uintptr_t>(at));
    }
    ASSERT_FALSE(begins_.empty());
    for (auto*& page : pages_) {
      page = static_cast<char*>(
          mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ASSERT_NE(page, MAP_FAILED);
      std::memset(page, 'a', kPage);
      ASSERT_EQ(mprotect(page + kPage, kPage, PROT_NONE), 0);
    }
  }

  // With either encoding.
  void compile() {
    JNIEnv* const env = session().jvm().env();
    const jclass string = env->FindClass("java/lang/String");
    const jmethodID search = env->GetMethodID(string, "indexOf", "(Ljava/lang/String;)I");
    const jstring in[] = {env->NewStringUTF("ababcab"), env->NewStringUTF("ab\u20acbcab")};
    const jstring of[] = {env->NewStringUTF("abc"), env->NewStringUTF("bca")};
    constexpr int kCalls = 60'000;
    for (int i = 0; i < kCalls; ++i) env->CallIntMethod(in[i / 7 % 2], search, of[i / 7 % 2]);
    session().jvm().code_map().absorb();
  }

  // Its frame, from the lowest word on, and nothing but `stale` in what it does not use yet.
  uintptr_t make_frame(uintptr_t below, const std::array<void*, 2>& stale) const {
    const size_t words = code_->frame_bytes / sizeof(void*);
    auto** const frame = reinterpret_cast<void**>(below);
    for (size_t i = 0; i < words; ++i) frame[words - 1 - i] = stale[i % 2];
    frame[words - 1] = callers_.front().pc;
    frame[words - 2] = callers_.front().fp;
    return below;
  }

  // `check`: what is walked with all registers, and with three.
  void search(uintptr_t from, const Searched& searched, const std::array<void*, 2>& stale,
              const std::function<void(bool has_registers)>& check) {
    ThreadSlot* const slot = victim(scenario_).slot;
    gregset_t saved;
    std::memcpy(&saved, &slot->context->uc_mcontext.gregs, sizeof(saved));
    constexpr uintptr_t kBelow = 32 * 1024;
    const uintptr_t sp =
        make_frame((get_register(*slot->context, Register::sp) - kBelow) & ~uintptr_t{15}, stale);
    const auto place = [&](size_t page, size_t length, bool at_end) {
      constexpr size_t kSizeOfChar = 2;
      return reinterpret_cast<greg_t>(pages_[page]) +
             static_cast<greg_t>(at_end ? kPage - kSizeOfChar * length : kPage / 2);
    };
    greg_t* const registers = slot->context->uc_mcontext.gregs;
    set_register(slot->context, Register::pc, from);
    set_register(slot->context, Register::sp, sp);
    registers[REG_RDI] = place(0, searched.length, searched.at_end);
    registers[REG_RSI] = place(1, searched.sought, searched.sought_at_end);
    registers[REG_RDX] = static_cast<greg_t>(searched.length);
    registers[REG_RAX] = static_cast<greg_t>(searched.sought);
    constexpr int kMostSteps = 2000;
    for (int i = 0; i < kMostSteps; ++i) {
      const uintptr_t pc = get_register(*slot->context, Register::pc);
      ASSERT_TRUE(World::get().step(slot, {.steps = 1}));
      ucontext_t& context = *slot->context;
      words_.insert((sp - get_register(context, Register::sp)) / sizeof(sp));
      run_context(&context, [&](ASGST_Iterator* it) { take(it); });
      check(true);
      run_from(registers_of(context), [&](ASGST_Iterator* it) { take(it); });
      check(false);
      const uint8_t pop_sp = 0x5c;
      if (read_at<uint8_t>(reinterpret_cast<void*>(pc)) == pop_sp) break;
      ASSERT_LT(i, kMostSteps - 1) << "no end";
    }
    std::memcpy(&slot->context->uc_mcontext.gregs, &saved, sizeof(saved));
  }
  void take(ASGST_Iterator* iterator) {
    walked_ = rest(iterator);
    end_ = state_(iterator);
    pc_ = walked_.empty() ? 0 : reinterpret_cast<uintptr_t>(walked_.front().pc) - code_->begin;
  }

  // The method, with what is inlined in it, then its callers.
  bool is_whole() {
    const auto method = std::ranges::find_if(walked_, [this](const ASGST_Frame& frame) {
      return method_of(frame) == "java/lang/String.indexOf" &&
             frame.type != ASGST_FRAME_JAVA_INLINED;
    });
    return method != walked_.end() &&
           std::equal(method + 1, walked_.end(), callers_.begin(), callers_.end(), same_place);
  }

  static constexpr Searched kSearched[] = {{5, 3, false, false}, {5, 3, false, true},
                                           {5, 3, true, false},  {5, 3, true, true},
                                           {7, 7, true, true},   {60, 20, false, false}};

  const CodeEntry* code_ = nullptr;
  std::vector<uintptr_t> begins_;
  std::array<char*, 2> pages_ = {};
  std::vector<ASGST_Frame> callers_, walked_;
  int end_ = 0;
  uintptr_t pc_ = 0;           // of the walk, in the code
  std::set<uintptr_t> words_;  // on top of the frame
};

TEST_F(StringSearchTest, IsAboveItsCallerAtEachInstruction) {
  for (const uintptr_t from : begins_) {
    for (const Searched& searched : kSearched) {
      search(from, searched, {callers_.front().pc, callers_.front().pc}, [&](bool has_registers) {
        EXPECT_TRUE(is_whole()) << "at +" << pc_ << (has_registers ? "" : ", of three registers")
                                << ": " << walked_.size() << " frames, then " << end_;
      });
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_EQ(words_, (std::set<uintptr_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

// Of three registers there may be two places that look like the caller's. Neither is guessed then.
TEST_F(StringSearchTest, IsNotAboveWhatLooksLikeACaller) {
  const ASGST_Frame other = callers_[1];
  size_t stopped = 0;
  for (const Searched& searched : kSearched) {
    search(begins_.front(), searched, {other.pc, other.fp}, [&](bool has_registers) {
      const bool whole = is_whole();
      const bool stops = end_ == ASGST_STOPPED_BAD_FRAME && walked_.back().method != nullptr &&
                         method_of(walked_.back()) == "java/lang/String.indexOf";
      stopped += stops ? 1 : 0;
      EXPECT_TRUE(whole || (stops && !has_registers))
          << "at +" << pc_ << (has_registers ? "" : ", of three registers") << ": "
          << walked_.size() << " frames, then " << end_;
    });
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(stopped, 0U);
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
  auto* const return_pc = static_cast<uintptr_t*>(frames[1].fp) + 1;
  const uintptr_t saved = *return_pc;
  *return_pc = 0x1000;
  std::vector<ASGST_Frame> seen;
  int end = 0;
  run([&](ASGST_Iterator* it) {
    seen = rest(it);
    end = state_(it);
  });
  *return_pc = saved;
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
  ASSERT_EQ(mprotect(pages + kPage, kPage, PROT_NONE), 0);
  bool called = false;
  const auto handler = [&](ASGST_Iterator*) { called = true; };
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
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    // A place of its own: what it is told once for each.
    const int result = run([](ASGST_Iterator*) {});
    const ASGST_Frame nowhere = {};
    const int from_frame = run_from(nowhere, [](ASGST_Iterator*) {});
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    EXPECT_EQ(result, ASGST_FAULTS_BLOCKED);
    EXPECT_EQ(from_frame, ASGST_FAULTS_BLOCKED);
  }
  EXPECT_FALSE(all().empty());
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
  const ThreadIdentity::Scoped as_nobody(session().jvm().identity(), nullptr);
  EXPECT_EQ(thread_state_(), 0);
}

// Where a virtual thread's frames end and its carrier's begin.
class ContinuationTest : public IteratorTest {
 protected:
  struct Walked {
    std::vector<ASGST_Frame> frames;
    int end = 1;
    ASGST_ContinuationCounts counted = {};  // by this walk
  };
  Walked walk(int options = 0) {
    const auto get = reinterpret_cast<decltype(&ASGST_GetContinuationCounts)>(
        session().jvm().symbol("ASGST_GetContinuationCounts"));
    EXPECT_NE(get, nullptr);
    ASGST_ContinuationCounts before, after;
    get(&before);
    Walked walked;
    run(
        [&](ASGST_Iterator* iterator) {
          walked.frames = rest(iterator);
          walked.end = state_(iterator);
        },
        options);
    get(&after);
    walked.counted = {after.barriers - before.barriers, after.entries - before.entries,
                      after.entries_missing - before.entries_missing,
                      after.speculative - before.speculative};
    return walked;
  }
  static size_t entry_of(const std::vector<ASGST_Frame>& frames) {
    return static_cast<size_t>(std::ranges::find_if(frames, &ContinuationTest::enters) -
                               frames.begin());
  }
  static bool enters(const ASGST_Frame& frame) {
    return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
  }
  // The boundary is one frame with the method's name; asked to, the walk ends with it.
  void expect_boundary(const Walked& walked, uint8_t type, int end) {
    const size_t entry = entry_of(walked.frames);
    ASSERT_LT(entry, walked.frames.size()) << "no frame says that the continuation begins";
    EXPECT_EQ(std::ranges::count_if(walked.frames, &ContinuationTest::enters), 1);
    EXPECT_EQ(walked.frames[entry].type, type);
    EXPECT_EQ(method_of(walked.frames[entry]), "jdk/internal/vm/Continuation.enterSpecial");
    EXPECT_EQ(method_of(walked.frames.back()), "java/util/concurrent/ForkJoinWorkerThread.run");
    EXPECT_EQ(walked.end, end);
    const Walked own = walk(ASGST_END_AT_CONTINUATION);
    EXPECT_EQ(own.end, end);
    ASSERT_EQ(own.frames.size(), entry + 1);
    EXPECT_TRUE(same(own.frames, {walked.frames.begin(),
                                  walked.frames.begin() + static_cast<ptrdiff_t>(entry) + 1}));
    // Started in the carrier, it knows of no continuation.
    int carriers_end = 1;
    run_from(walked.frames[entry + 1], [&](ASGST_Iterator* iterator) {
      EXPECT_EQ(rest(iterator).size(), walked.frames.size() - entry - 1);
      carriers_end = state_(iterator);
    });
    EXPECT_EQ(carriers_end, ASGST_NO_FRAME);
  }
};

TEST_F(ContinuationTest, AllFramesOfAThreadThatNeverYieldedAreThere) {
  begin(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk();
  expect_boundary(walked, ASGST_FRAME_CONTINUATION, ASGST_NO_FRAME);
  EXPECT_EQ(walked.counted.barriers, 0);
  EXPECT_EQ(walked.counted.entries, 1);
  EXPECT_EQ(walked.counted.entries_missing, 0);
  EXPECT_EQ(walked.counted.speculative, 0);
}

TEST_F(ContinuationTest, FrozenFramesAreSaidToBeMissing) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk();
  expect_boundary(walked, ASGST_FRAME_CONTINUATION_FROZEN, ASGST_FRAMES_FROZEN);
  EXPECT_EQ(walked.counted.barriers, 1);
  EXPECT_EQ(walked.counted.entries, 1);
  EXPECT_EQ(walked.counted.entries_missing, 0);
}

TEST_F(ContinuationTest, ABarrierOfNoContinuationEndsTheWalkAndIsCounted) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  auto* const entered = reinterpret_cast<void**>(
      static_cast<char*>(victim(scenario_).java_thread) +
      session().jvm().structs().required_offset("JavaThread", "_cont_entry"));
  void* const saved = std::exchange(*entered, nullptr);
  const Walked walked = walk();
  *entered = saved;
  EXPECT_EQ(walked.end, ASGST_STOPPED_BAD_PC);
  EXPECT_EQ(entry_of(walked.frames), walked.frames.size());
  EXPECT_EQ(walked.counted.entries_missing, 1);
  EXPECT_EQ(walked.counted.entries, 0);
}

}  // namespace
}  // namespace framestorm
