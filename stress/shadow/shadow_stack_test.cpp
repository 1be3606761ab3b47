#include "stress/shadow/shadow_stack.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "stress/shadow/instrumented_methods.h"

namespace framestorm::stress {
namespace {

TEST(ShadowStack, IsCopiedFromInside) {
  ShadowStacks stacks;
  ShadowStack& stack = stacks.take(7, false);
  for (int32_t method = 1; method <= 3; ++method) {
    EXPECT_EQ(ShadowStacks::push(stack, method), method - 1);
  }
  std::array<ShadowEntry, 2> innermost;
  EXPECT_EQ(stack.copy(innermost), 3U);
  EXPECT_EQ(innermost[0].method, 3);
  EXPECT_EQ(innermost[1].method, 2);
}

TEST(ShadowStack, GrowsBeyondItsFirstEntries) {
  ShadowStacks stacks;
  ShadowStack& stack = stacks.take(7, false);
  for (int32_t i = 0; i < 5000; ++i) ShadowStacks::push(stack, i);
  std::vector<ShadowEntry> all(5000);
  ASSERT_EQ(stack.copy(all), 5000U);
  for (int32_t i = 0; i < 5000; ++i) EXPECT_EQ(all[static_cast<size_t>(4999 - i)].method, i);
  EXPECT_GE(stack.limit, 5000);
}

TEST(ShadowStack, AnEntryIsToldFromALaterOneOfTheSameMethod) {
  ShadowStacks stacks;
  ShadowStack& stack = stacks.take(7, false);
  std::array<ShadowEntry, 1> first;
  std::array<ShadowEntry, 1> second;
  ShadowStacks::push(stack, 1);
  stack.copy(first);
  stack.depth = 0;
  ShadowStacks::push(stack, 1);
  stack.copy(second);
  EXPECT_NE(first[0], second[0]);
}

TEST(ShadowStack, ACheckIsAskedForByTheLimitAndOnlyOnce) {
  ShadowStacks stacks;
  ShadowStack& stack = stacks.take(7, false);
  stack.request_check();
  EXPECT_EQ(stack.limit, 0);
  ShadowStacks::push(stack, 1);
  EXPECT_EQ(stack.limit, stack.capacity);
}

TEST(ShadowStack, ThreadsThatEndLeaveTheirsToOthers) {
  ShadowStacks stacks;
  for (int64_t thread = 1; thread <= 100'000; ++thread) {
    ShadowStack& stack = stacks.take(thread, false);
    EXPECT_EQ(stack.owner, thread);
    ShadowStacks::push(stack, 1);
    stacks.release(thread);
  }
  EXPECT_EQ(stacks.totals().live, 0U);
  EXPECT_EQ(stacks.totals().made, 1U);
}

TEST(ShadowStack, ThreadsThatShareAPlaceInTheTableKeepTheirOwn) {
  ShadowStacks stacks;
  ShadowStack& one = stacks.take(5, false);
  ShadowStacks::push(one, 1);
  ShadowStack& other = stacks.take(5 + (int64_t{1} << 16), false);
  EXPECT_NE(&one, &other);
  EXPECT_EQ(&stacks.take(5, false), &one);
  EXPECT_EQ(one.depth, 1);
}

TEST(InstrumentedMethods, ANameHasOneNumberAndOverloadsHaveTheirOwn) {
  InstrumentedMethods methods;
  const int32_t number = methods.number_of("my/A", "f", "()V");
  EXPECT_EQ(methods.number_of("my/A", "f", "()V"), number);
  EXPECT_NE(methods.number_of("my/A", "f", "(I)V"), number);
  EXPECT_EQ(methods.find("my/A.f", "()V"), number);
  EXPECT_EQ(methods.find("my/A.g", "()V"), std::nullopt);
}

TEST(InstrumentedMethods, ACallHasToStandWhereTheFrameSaysItDoes) {
  InstrumentedMethods methods;
  const int32_t caller = methods.number_of("my/A", "f", "()V");
  methods.describe(caller, 2, {{6, "g"}, {9, ""}});
  EXPECT_EQ(methods.why_not_called(caller, 6, "my/B.g"), "");
  EXPECT_EQ(methods.why_not_called(caller, 6, "my/B.h"), "a call of g");
  EXPECT_EQ(methods.why_not_called(caller, 7, "my/B.g"), "no call");
  EXPECT_EQ(methods.why_not_called(caller, 9, "my/B.h"), "");
  EXPECT_EQ(methods.why_not_called(caller, 7, "my/B.<clinit>"), "");
  EXPECT_TRUE(methods.is_before_push(caller, 2));
  EXPECT_FALSE(methods.is_before_push(caller, 3));
  // A class that was replaced has indices of its own.
  methods.describe(caller, 2, {{8, "g"}});
  EXPECT_EQ(methods.why_not_called(caller, 7, "my/B.g"), "");
}

}  // namespace
}  // namespace framestorm::stress
