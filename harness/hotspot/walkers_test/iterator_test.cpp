// The iterators of profile2.h on live victims, call by call.
#include <jvmti.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/blocked_signal.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"
#include "harness/victim/context.h"

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
