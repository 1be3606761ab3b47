// Walks that oracles make of the same victim beside the first. What is wrong with these alone is a finding, too. What
// differs because a walk reads its own stack is none.
#include "harness/oracles/further_walks.h"

#include <cerrno>
#include <cstdlib>

#include "harness/oracles/oracle_fixture.h"

namespace framestorm::oracle_test {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::Walked;

// Volatile, so that the compiler keeps what the wrong walkers do.
void* volatile block;
int* volatile nowhere;
volatile uint64_t turns;
int calls;

bool is_shallow(const FakeWalk& walk) { return walk.depth < 10; }

// A walk of an oracle's own, with another depth: what is wrong with it alone is a finding, of an
// input that shows it at once.
const std::array kShallowDefects = {
    Defect{"Fault",
           [](const FakeWalk& walk) { return is_shallow(walk) ? *nowhere : walk.right(); },
           {"fault:"}},
    Defect{"Hang",
           [](const FakeWalk& walk) {
             while (is_shallow(walk)) turns = turns + 1;
             return walk.right();
           },
           {"hang:"}},
    Defect{"Abort",
           [](const FakeWalk& walk) {
             if (is_shallow(walk)) abort();
             return walk.right();
           },
           {"terminal_call:abort"}},
    Defect{"Allocates",
           [](const FakeWalk& walk) {
             if (is_shallow(walk)) {
               block = malloc(100);
               free(block);
             }
             return walk.right();
           },
           {"unsafe_call:free", "unsafe_call:malloc"}},
    Defect{"WritesPastFrames",
           [](const FakeWalk& walk) {
             if (is_shallow(walk)) walk.frames[walk.depth].bci = 1;
             return walk.right();
           },
           {"contract:writes-past-frames"}},
    Defect{"ChangesErrno",
           [](const FakeWalk& walk) {
             if (is_shallow(walk)) errno = EINTR;
             return walk.right();
           },
           {"contract:errno-changed"}},
};

class EachShallowDefect : public OracleTest, public testing::WithParamInterface<Defect> {};

INSTANTIATE_TEST_SUITE_P(Walkers, EachShallowDefect, testing::ValuesIn(kShallowDefects),
                         [](const auto& defect) { return defect.param.name; });

TEST_P(EachShallowDefect, IsAFindingOfItsDepth) {
  start(GetParam().walk);
  ASSERT_FALSE(HasFatalFailure());
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    halt_in_java(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    const Walked deep = walk(input(mode));
    EXPECT_TRUE(deep.outcome.succeeded()) << "the walk itself is right";
    ASSERT_EQ(clauses_of(deep.findings), GetParam().expected) << explain(deep);
    Input shallow = input(mode);
    shallow.call.depth = DepthKind::raw;
    shallow.call.raw_depth = deep.outcome.result / 2;
    for (const Finding& finding : deep.findings) EXPECT_EQ(finding.input, shallow);
    std::string difference;
    EXPECT_TRUE(session().victims().verify(victim(ScenarioId::c1), false, &difference))
        << difference;
    EXPECT_EQ(clauses_of(walk(shallow).findings), GetParam().expected);
    session().release_world();
  }
}

// Walks that take words below the victim's sp for frames: in same-thread mode their own.

constexpr uint64_t kMark = 0x6d61726b'6d61726b;
constexpr int32_t kFarBelow = 32'768;  // in bytes: all of handler and walk

// How the walkers' answers change: with each call, or with the depth. 1 in the first walk.
uint64_t (*change)(const FakeWalk&);
uint64_t by_call(const FakeWalk&) { return static_cast<uint64_t>(++calls); }
uint64_t by_depth(const FakeWalk& walk) { return is_shallow(walk) ? 2 : 1; }

// A right walk, but the change is in its first frame's sp.
int32_t changes_by_itself(const FakeWalk& walk) {
  const int32_t count = walk.right();
  walk.frames[0].sp += change(walk);
  return count;
}

// The same, but it finds the change in its own frame, looking up to the victim's sp from `begin`.
int32_t finds_change(const FakeWalk& walk, uintptr_t begin) {
  volatile uint64_t own[] = {kMark, ~kMark, change(walk)};
  asm volatile("" : : "r"(&own) : "memory");  // in memory, as they stand here
  const int32_t count = walk.right();
  const auto* word = reinterpret_cast<const uint64_t*>(begin);
  const uint64_t* end = stack_word(walk, 0) - std::size(own);
  while (word < end && (word[0] != kMark || word[1] != ~kMark)) ++word;
  if (word < end) walk.frames[0].sp += word[2];
  return count;
}
// It looks where a mutated register leads it,
int32_t finds_change_where_led(const FakeWalk& walk) {
  return finds_change(walk, get_register(*walk.context, Register::r5));
}
// or there in any case.
int32_t finds_change_by_itself(const FakeWalk& walk) {
  return finds_change(walk, reinterpret_cast<uintptr_t>(stack_word(walk, 0)) - kFarBelow);
}

class BelowSp : public OracleTest {
 protected:
  void start(uint64_t (*what)(const FakeWalk&), FakeWalker::Body body) {
    change = what;
    calls = 0;
    OracleTest::start(body);
    if (HasFatalFailure()) return;
    halt_in_java(ScenarioId::c1);
  }
  static Input led_below(Mode mode) {
    Input led = input(mode);
    led.mutations.resize(1);
    led.mutations[0].reg = Register::r5;
    led.mutations[0].value.kind = ValueKind::real_sp;
    led.mutations[0].value.delta = -kFarBelow;
    return led;
  }
  // Expects the change to be in the walk, and these findings.
  void expect(const Input& input, const std::vector<std::string>& clauses) {
    const Walked walked = walk(input);
    ASSERT_TRUE(walked.outcome.succeeded());
    EXPECT_EQ(walked.frames[0].sp, 0x1001U) << "a right walk's, and the change";
    EXPECT_EQ(clauses_of(walked.findings), clauses) << explain(walked);
  }
  static inline const std::vector<std::string> kByCall = {"contract:depth-changes-frames",
                                                          "contract:not-deterministic"};
  static inline const std::vector<std::string> kByDepth = {"contract:depth-changes-frames"};
};

TEST_F(BelowSp, AMutatedWalkThatReadsItselfIsNotComparedWithTheNext) {
  start(&by_call, &finds_change_where_led);
  ASSERT_FALSE(HasFatalFailure());
  expect(led_below(Mode::same_thread), {});
}

TEST_F(BelowSp, AMutatedWalkThatReadsItselfIsNotComparedWithAShorterOne) {
  start(&by_depth, &finds_change_where_led);
  ASSERT_FALSE(HasFatalFailure());
  expect(led_below(Mode::same_thread), {});
}

TEST_F(BelowSp, AMutatedWalkThatChangesByItselfIsReported) {
  start(&by_call, &changes_by_itself);
  ASSERT_FALSE(HasFatalFailure());
  expect(led_below(Mode::same_thread), kByCall);
}

TEST_F(BelowSp, AMutatedWalkThatChangesByItselfWithItsDepthIsReported) {
  start(&by_depth, &changes_by_itself);
  ASSERT_FALSE(HasFatalFailure());
  expect(led_below(Mode::same_thread), kByDepth);
}

TEST_F(BelowSp, AWalkOnAnotherThreadIsReported) {
  start(&by_call, &changes_by_itself);
  ASSERT_FALSE(HasFatalFailure());
  expect(led_below(Mode::separate_thread), kByCall);
}

TEST_F(BelowSp, AnUnmutatedWalkThatReadsItselfIsReported) {
  start(&by_call, &finds_change_by_itself);
  ASSERT_FALSE(HasFatalFailure());
  expect(input(Mode::same_thread), kByCall);
}

TEST_F(OracleTest, AnOraclesOwnWalkCanBeTheProcessLastOne) {
  calls = 0;
  start([](const FakeWalk& walk) -> int32_t {
    if (++calls == 2) abort();
    return walk.right();
  });
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk(input(Mode::separate_thread));
  EXPECT_TRUE(walked.outcome.succeeded());
  EXPECT_TRUE(walked.outcome.not_reusable);
  EXPECT_EQ(calls, 2) << "walked on after the last walk";
}

}  // namespace
}  // namespace framestorm::oracle_test
