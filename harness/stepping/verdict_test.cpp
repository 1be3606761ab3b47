// What traces are called that are wrong in one way each.
#include "harness/stepping/verdict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace framestorm::stepping {
namespace {

jmethodID id(uintptr_t number) { return reinterpret_cast<jmethodID>(number * 8); }

Frame frame(uintptr_t method, int32_t bci) {
  Frame result;
  result.method = id(method);
  result.bci = bci;
  return result;
}

TrueFrame truth(uintptr_t method, int32_t bci) { return {.method = id(method), .bci = bci}; }

class VerdictTest : public testing::Test {
 protected:
  std::string said(const std::vector<Frame>& frames, const std::vector<TrueFrame>& truth,
                   bool cut = false, WalkerId walker = WalkerId::asgct) {
    const Judgement judgement = judge(frames, truth, traits_of(walker), methods_, cut);
    if (judgement.verdict == Verdict::right) return "right";
    return std::string(name_of(judgement.verdict)) + " " + std::string(judgement.clause) + " " +
           std::to_string(judgement.at);
  }

  MethodTable methods_;
  const std::vector<TrueFrame> stack_ = {truth(1, kAnyBci), truth(2, 5), truth(3, 7)};
};

TEST_F(VerdictTest, TheInnermostBciIsHeldWhereItIsKnown) {
  EXPECT_EQ(said({frame(1, 4), frame(2, 5), frame(3, 7)}, stack_), "right");
  EXPECT_EQ(said({frame(1, 9), frame(2, 5), frame(3, 7)}, stack_), "right");
  std::vector<TrueFrame> known = stack_;
  known[0].bci = 4;
  EXPECT_EQ(said({frame(1, 9), frame(2, 5), frame(3, 7)}, known, false, WalkerId::asgst), "right");
  known[0].exact = true;
  const std::vector<Frame> trace = {frame(1, 9), frame(2, 5), frame(3, 7)};
  EXPECT_EQ(said(trace, known), "right") << "AsyncGetCallTrace guesses it";
  EXPECT_EQ(said(trace, known, false, WalkerId::asgst), "wrong wrong-bci 0");
  EXPECT_EQ(said({frame(1, 4), frame(2, 5), frame(3, 7)}, known, false, WalkerId::asgst), "right");
}

TEST_F(VerdictTest, OnlyANativeMethodHasNoBci) {
  methods_.add(id(2), {"a/A.called", 40});
  methods_.absorb();
  const std::vector<Frame> trace = {frame(1, 4), frame(2, kNoBci), frame(3, 7)};
  EXPECT_EQ(said(trace, stack_, false, WalkerId::asgst), "wrong wrong-bci 1");
  methods_.add(id(2), {"a/A.called", -1});
  methods_.absorb();
  EXPECT_EQ(said(trace, stack_, false, WalkerId::asgst), "right");
}

TEST_F(VerdictTest, EachWayOfBeingWrongHasAName) {
  EXPECT_EQ(said({frame(2, 5), frame(3, 7)}, stack_), "wrong innermost-frame-left-out 0");
  EXPECT_EQ(said({frame(1, 4), frame(3, 7)}, stack_), "wrong caller-left-out 1");
  EXPECT_EQ(said({frame(1, 4), frame(2, 6), frame(3, 7)}, stack_), "wrong wrong-bci 1");
  EXPECT_EQ(said({frame(1, 4), frame(2, 5), frame(2, 5), frame(3, 7)}, stack_),
            "wrong frame-not-there 2");
  EXPECT_EQ(said({frame(8, 0), frame(9, 0)}, stack_), "wrong frame-not-there 0");
  EXPECT_EQ(said({frame(1, 4), frame(2, 5), frame(3, 7), frame(4, 0)}, stack_),
            "wrong frame-below-the-last 3");
}

TEST_F(VerdictTest, LessThanIsThereIsShortOrRefused) {
  EXPECT_EQ(said({frame(1, 4), frame(2, 5)}, stack_), "short trace-ends-early 2");
  EXPECT_EQ(said({frame(1, 4), frame(2, 5)}, stack_, /*cut=*/true), "right");
  EXPECT_EQ(said({}, stack_), "refused no-frames 0");
  EXPECT_EQ(said({}, {}), "right");
}

TEST_F(VerdictTest, AMethodThatIsEnteredMayBeThere) {
  std::vector<TrueFrame> entering = stack_;
  entering[0].sort = TrueFrame::Sort::optional;
  EXPECT_EQ(said({frame(1, 0), frame(2, 5), frame(3, 7)}, entering), "right");
  EXPECT_EQ(said({frame(2, 5), frame(3, 7)}, entering), "right");
  EXPECT_EQ(said({frame(3, 7)}, entering), "wrong innermost-frame-left-out 0");
}

TEST_F(VerdictTest, FrozenFramesMayBeLeftOutByThoseWhoDoNotSeeThem) {
  const std::vector<TrueFrame> frozen = {
      truth(1, kAnyBci), {.sort = TrueFrame::Sort::frozen}, truth(2, 5)};
  EXPECT_EQ(said({frame(1, 0)}, frozen), "right");
  EXPECT_EQ(said({frame(1, 0), frame(2, 5)}, frozen), "right");
  EXPECT_EQ(said({frame(1, 0)}, frozen, false, WalkerId::gst), "short trace-ends-early 1");
  EXPECT_EQ(said({frame(1, 0), frame(3, 7)}, frozen), "wrong frame-not-there 1");
}

TEST_F(VerdictTest, BelowAVirtualThreadAreItsCarriersFrames) {
  const std::vector<TrueFrame> mounted = {truth(1, kAnyBci), {.sort = TrueFrame::Sort::carrier}};
  EXPECT_EQ(said({frame(1, 0)}, mounted), "right");
  EXPECT_EQ(said({frame(1, 0), frame(9, 3)}, mounted), "right");
  EXPECT_EQ(said({frame(9, 3)}, mounted), "wrong frame-not-there 0");
}

TEST_F(VerdictTest, AnUnnamedFrameIsOfANativeMethod) {
  methods_.add(id(1), {"a/A.interpreted", 40});
  methods_.add(id(2), {"a/A.called", -1});
  methods_.add(id(3), {"a/A.run", 40});
  methods_.absorb();
  Frame native = frame(0, kNoBci);
  native.unnamed = true;
  const auto judged = [&](const std::vector<Frame>& frames, const std::vector<TrueFrame>& truth) {
    return said(frames, truth, false, WalkerId::asgct2_packed);
  };
  std::vector<TrueFrame> stack = {truth(2, kAnyBci), truth(3, 7)};
  EXPECT_EQ(judged({native, frame(3, 7)}, stack), "right");
  EXPECT_EQ(judged({frame(2, kNoBci), frame(3, 7)}, stack), "right") << "its code is known";
  EXPECT_EQ(judged({native, native, frame(3, 7)}, stack), "wrong frame-not-there 1");
  EXPECT_EQ(judged({frame(3, 7)}, stack), "wrong innermost-frame-left-out 0");
  stack[0].method = id(1);
  EXPECT_EQ(judged({native, frame(3, 7)}, stack), "wrong frame-not-there 0") << "it is not native";
  stack[0].replaced = true;
  EXPECT_EQ(judged({native, frame(3, 7)}, stack), "wrong frame-not-there 0");
}

// Nobody has asked for the ID of a version that is replaced.
TEST_F(VerdictTest, AFrameOfAReplacedMethodMayHaveNoId) {
  const std::vector<Frame> unnamed = {frame(1, 4), frame(0, 5), frame(3, 7)};
  EXPECT_EQ(said(unnamed, stack_), "wrong frame-not-there 1");
  std::vector<TrueFrame> replaced = stack_;
  replaced[1].replaced = true;
  EXPECT_EQ(said(unnamed, replaced), "right");
  EXPECT_EQ(said({frame(1, 4), frame(0, 6), frame(3, 7)}, replaced), "wrong frame-not-there 1");
}

}  // namespace
}  // namespace framestorm::stepping
