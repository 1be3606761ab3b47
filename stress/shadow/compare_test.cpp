#include "stress/shadow/compare.h"

#include <gtest/gtest.h>

#include <vector>

namespace framestorm::stress {
namespace {

using enum TruthVerdict;

// Methods innermost first; the first frame is the trace's innermost one.
std::vector<TraceFrame> trace_of(const std::vector<int32_t>& methods, bool innermost = true) {
  std::vector<TraceFrame> trace;
  trace.reserve(methods.size());
  for (const int32_t method : methods) {
    trace.push_back({method, trace.size(), false, innermost && trace.empty()});
  }
  return trace;
}

TruthVerdict verdict(const std::vector<TraceFrame>& trace, const std::vector<int32_t>& shadow,
                     bool complete = true, bool may_lack = false) {
  return compare(trace, {shadow, static_cast<uint32_t>(shadow.size()), complete, may_lack}).verdict;
}

TEST(Compare, TheSameMethodsInTheSameOrderAreRight) {
  EXPECT_EQ(verdict(trace_of({3, 2, 1}), {3, 2, 1}), right);
  EXPECT_EQ(verdict(trace_of({}), {}), right);
}

TEST(Compare, OnlyTheInnermostFrameMayBeInItsPush) {
  EXPECT_EQ(verdict(trace_of({4, 3, 2, 1}), {3, 2, 1}), in_transition);
  EXPECT_EQ(verdict(trace_of({4, 3, 2, 1}, /*innermost=*/false), {3, 2, 1}), invented);
  EXPECT_EQ(verdict(trace_of({5, 4, 3, 2, 1}), {3, 2, 1}), invented);
}

TEST(Compare, AFrameThatIsLostIsMissedUnlessItsCodeIsInlined) {
  EXPECT_EQ(verdict(trace_of({2, 1}), {3, 2, 1}), shorter);
  EXPECT_EQ(verdict(trace_of({2, 1}), {3, 2, 1}, true, /*may_lack=*/true), in_transition);
  EXPECT_EQ(verdict(trace_of({3, 1}), {3, 2, 1}, true, true), shorter);
  EXPECT_EQ(verdict(trace_of({1}), {3, 2, 1}, true, true), shorter);
}

TEST(Compare, AnEarlyEndIsMissedUnlessTheTraceWasCut) {
  EXPECT_EQ(verdict(trace_of({3, 2}), {3, 2, 1}), shorter);
  EXPECT_EQ(verdict(trace_of({3, 2}), {3, 2, 1}, /*complete=*/false), right);
  EXPECT_EQ(verdict(trace_of({}), {1}), shorter);
}

TEST(Compare, AnEarlyEndIsSeenBelowAnInnermostFrameThatIsInItsPush) {
  EXPECT_EQ(verdict(trace_of({4, 3, 2}), {3, 2, 1}), shorter);
  EXPECT_EQ(compare(trace_of({4, 3, 2}), {std::vector{3, 2, 1}, 3, true, false}).at, 3U);
  EXPECT_EQ(verdict(trace_of({4, 3, 2}, /*innermost=*/false), {3, 2, 1}), wrong_method);
  EXPECT_EQ(verdict(trace_of({4}), {3, 2, 1}), wrong_method) << "no frame is the thread's";
}

TEST(Compare, FramesThatAreNotTheThreadsAreNamed) {
  EXPECT_EQ(verdict(trace_of({3, 2, 1, 0}), {3, 2, 1}), too_deep);
  EXPECT_EQ(verdict(trace_of({3, 9, 2, 1}), {3, 2, 1}), invented);
  EXPECT_EQ(verdict(trace_of({3, 9, 1}), {3, 2, 1}), wrong_method);
  EXPECT_EQ(verdict(trace_of({1, 2, 3}), {3, 2, 1}), wrong_method);
}

TEST(Compare, AMethodThatCallsItselfMayHaveYetToPush) {
  std::vector<TraceFrame> trace = trace_of({2, 2, 1}, false);
  trace.front().may_be_absent = true;
  EXPECT_EQ(verdict(trace, {2, 1}), right);
  EXPECT_EQ(verdict(trace, {2, 2, 1}), right);
  EXPECT_EQ(verdict(trace, {1}), invented);
  trace.resize(1);
  EXPECT_EQ(verdict(trace, {2}), right);
  EXPECT_EQ(verdict(trace, {}), right);
}

TEST(Compare, OfADeepStackTheInnermostPartIsKnown) {
  const std::vector<int32_t> innermost = {5, 4, 3};
  const Against against = {innermost, 5, true, false};
  EXPECT_EQ(compare(trace_of({5, 4, 3, 2, 1}), against).verdict, right);
  EXPECT_EQ(compare(trace_of({5, 4}), against).verdict, shorter);
  EXPECT_EQ(compare(trace_of({5, 3, 2, 1}), against).verdict, wrong_method);
}

TEST(Compare, OfAWrongTraceItIsSaidWhetherItMerelyHasMoreOnTop) {
  const auto more_on_top = [](const std::vector<int32_t>& methods, bool complete = true) {
    const std::vector<int32_t> known = {3, 2, 1};
    // One frame further out, 0, is not known.
    return compare(trace_of(methods), {known, 4, complete, false}).has_more_on_top;
  };
  EXPECT_TRUE(more_on_top({9, 8, 3, 2, 1, 0}));
  EXPECT_FALSE(more_on_top({9, 8, 3, 2, 1, 0}, /*complete=*/false));
  EXPECT_FALSE(more_on_top({9, 8, 3, 2, 0}));
  EXPECT_FALSE(more_on_top({9, 8, 2, 1, 0}));
  EXPECT_FALSE(more_on_top({3, 9, 2, 1, 0}));
  EXPECT_FALSE(more_on_top({3, 2, 1, 0})) << "it is right";
}

TEST(Compare, SaysWhereTheyDiffer) {
  const std::vector<int32_t> shadow = {4, 3, 2, 1};
  const Compared compared = compare(trace_of({4, 3, 7, 1}), {shadow, 4, true, false});
  EXPECT_EQ(compared.verdict, wrong_method);
  EXPECT_EQ(compared.at, 2U);
}

}  // namespace
}  // namespace framestorm::stress
