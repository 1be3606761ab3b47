#include "harness/input/state.h"

#include <gtest/gtest.h>

#include <random>

#include "harness/input/random_input.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

StateKind state(const std::string& lines) {
  Input input;
  TextError error;
  EXPECT_TRUE(parse_text("framestorm-input 1\nscenario c1\n" + lines, &input, &error))
      << lines << ": " << error.message;
  return state_of(input);
}

// The victim is halted in C1.spin, 416 bytes below its stack's base.
StateKind halted(const std::string& lines) {
  return state("halt nmethod \"framestorm/C1.spin\" tier 1 entry + 0x35 frame-offset 416\n" +
               lines);
}

TEST(State, IsRealWithoutMutations) {
  EXPECT_EQ(state(""), StateKind::real);
  EXPECT_EQ(state("walker asgst-iterator\nmode separate-thread\noptions 0x3\niterator drain\n"),
            StateKind::real);
  EXPECT_EQ(state("depth one\n"), StateKind::real);
  EXPECT_EQ(state("depth exact - 1\n"), StateKind::real);
  EXPECT_EQ(state("depth 17\n"), StateKind::real);
  EXPECT_EQ(state("register pc = real\n"), StateKind::real) << "sets what is there";
}

TEST(State, IsTornByRealValuesElsewhere) {
  for (const char* line :
       {"register sp = real - 64", "register fp = real-sp", "register pc = real-pc + 5",
        "register pc = real - 5", "register rax = real-pc", "register pc = slot 3",
        "register sp = stack-base - 416", "stack sp + 3 = real-fp + 8", "stack fp + 1 = slot 51",
        "thread last-java-sp = real-sp - 65536", "thread last-java-fp = real + 16",
        "thread last-java-pc = real + 3", "thread last-java-sp = raw 0x0", "thread state = raw 0x8",
        "register pc = nmethod \"framestorm/C1.spin\" tier 1 entry + 0x10",
        "register pc = nmethod \"framestorm/C1.spin\" tier 1 end - 0x10"}) {
    EXPECT_EQ(halted(std::string(line) + "\n"), StateKind::torn) << line;
  }
}

TEST(State, IsCorruptByValuesFromElsewhere) {
  for (const char* line :
       {"register sp = raw 0x0", "register sp = raw 0x1000", "register sp = other-sp 1",
        "register pc = other-pc 1", "register pc = libc-text", "register pc = libjvm-text",
        "register fp = java-heap", "register sp = unmapped", "register sp = guard-page",
        "register sp = misaligned", "register sp = stack-end", "thread state = raw 0x63",
        "thread state = real-sp", "thread last-java-sp = misaligned",
        // Beyond what is known to be the thread's own, or between two words.
        "register sp = real + 416", "register sp = real-sp - 65544", "register sp = real-sp - 3",
        "register sp = stack-base", "register sp = stack-base - 424", "register pc = slot 52",
        "register pc = slot 3 + 1", "register pc = real-pc + 4096", "register rax = real + 8",
        "stack sp + 1 = real + 8",
        // Code that it is not in.
        "register pc = nmethod \"framestorm/Osr.loop\" tier 1 entry",
        "register pc = nmethod \"framestorm/C1.spin\" tier 4 entry",
        "register pc = nmethod \"framestorm/C1.spin\" tier 1 entry - 1",
        "register pc = nmethod \"framestorm/C1.spin\" tier 1 end",
        "register pc = codelet \"invokevirtual\" entry",
        "register pc = stub \"call_stub\" entry"}) {
    EXPECT_EQ(halted(std::string(line) + "\n"), StateKind::corrupt) << line;
  }
}

TEST(State, TakesTheInterpreterForOneCode) {
  EXPECT_EQ(state("halt codelet \"getstatic\" entry + 0x43\n"
                  "register pc = codelet \"invokevirtual\" entry + 7\n"),
            StateKind::torn);
}

TEST(State, KnowsLessWithoutAHalt) {
  EXPECT_EQ(state("register sp = real + 416\n"), StateKind::torn);
  EXPECT_EQ(state("register sp = real + 65536\n"), StateKind::corrupt);
  EXPECT_EQ(state("register pc = nmethod \"framestorm/C1.spin\" tier 1 entry\n"),
            StateKind::corrupt);
}

TEST(State, IsCorruptByACallThatNoProfilerMakes) {
  for (const char* lines :
       {"depth zero\n", "depth 0\n", "depth -3\n", "context null\n", "context misaligned\n",
        "env null\n", "env other-victim\n", "options 0x1\n", "walker asgst\noptions 0x10\n",
        "walker asgst-iterator\niterator next-null\n",
        "walker asgst-iterator\niterator open-null\n",
        "walker asgst-iterator\niterator select 0\n"}) {
    EXPECT_EQ(state(lines), StateKind::corrupt) << lines;
  }
}

TEST(State, IsThatOfTheWorstMutation) {
  EXPECT_EQ(state("register sp = real-sp - 64\nregister pc = real-pc\n"), StateKind::torn);
  EXPECT_EQ(state("register sp = real-sp - 64\nregister pc = unmapped\n"), StateKind::corrupt);
  EXPECT_EQ(state("register pc = unmapped\nregister sp = real-sp - 64\n"), StateKind::corrupt);
}

// A mutation more never makes a state more real.
TEST(State, OnlyGetsWorse) {
  TestRng rng(11);
  for (int i = 0; i < 1000; ++i) {
    Input input = random_input(rng);
    const StateKind whole = state_of(input);
    while (!input.mutations.empty()) {
      input.mutations.pop_back();
      EXPECT_LE(state_of(input), whole) << to_text(input);
    }
  }
}

}  // namespace
}  // namespace framestorm
