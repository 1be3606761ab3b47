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

TEST_F(VerdictTest, WhereAThreadHasNotedItsCallNobodyGuesses) {
  std::vector<TrueFrame> stack = stack_;
  stack[0] = {.method = id(1), .bci = 4, .pc = 0x10, .sp = 0x700};
  const auto judged = [&](int32_t bci, const NotedPlace& noted) {
    const std::vector<Frame> frames = {frame(1, bci), frame(2, 5), frame(3, 7)};
    const WalkerTraits& walker = traits_of(WalkerId::asgct);
    return std::string(judge(frames, stack, walker, methods_, false, noted).clause);
  };
  EXPECT_EQ(judged(4, {0x10, 0x700}), "");
  EXPECT_EQ(judged(9, {0x10, 0x700}), "wrong-bci");
  EXPECT_EQ(judged(9, {0x10, 0x6f0}), "") << "of another call";
  EXPECT_EQ(judged(9, {}), "");
  stack[0].sp = 0;
  EXPECT_EQ(judged(9, {0x10, 0}), "") << "an interpreted frame";
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

TEST_F(VerdictTest, WhoeverSaysThatFramesAreFrozenIsNotStoppedThere) {
  const std::vector<TrueFrame> frozen = {
      truth(1, kAnyBci), {.sort = TrueFrame::Sort::frozen}, truth(2, 5)};
  const std::vector<Frame> above = {frame(1, 0)};
  const auto clause = [&](WalkerId walker, bool stopped) {
    return std::string(
        judge(above, frozen, traits_of(walker), methods_, false, {}, stopped).clause);
  };
  EXPECT_EQ(clause(WalkerId::asgst, true), "trace-ends-early");
  EXPECT_EQ(clause(WalkerId::asgst, false), "");
  EXPECT_EQ(clause(WalkerId::asgct2, true), "") << "it cannot say so";
  const std::vector<TrueFrame> last = {frozen[0], frozen[1], {.sort = TrueFrame::Sort::carrier}};
  EXPECT_EQ(judge(above, last, traits_of(WalkerId::asgst), methods_, false, {}, true).verdict,
            Verdict::right)
      << "no frame of the thread's own is below";
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
  stack[0].may_have_no_id = true;
  EXPECT_EQ(judged({native, frame(3, 7)}, stack), "wrong frame-not-there 0");
}

// Nobody has asked for the ID of a version that is replaced.
TEST_F(VerdictTest, AFrameOfAReplacedMethodMayHaveNoId) {
  const std::vector<Frame> unnamed = {frame(1, 4), frame(0, 5), frame(3, 7)};
  EXPECT_EQ(said(unnamed, stack_), "wrong frame-not-there 1");
  std::vector<TrueFrame> replaced = stack_;
  replaced[1].may_have_no_id = true;
  EXPECT_EQ(said(unnamed, replaced), "right");
  EXPECT_EQ(said({frame(1, 4), frame(0, 6), frame(3, 7)}, replaced), "wrong frame-not-there 1");
}

// Of walkers that tell where frames are.
TEST_F(VerdictTest, AFrameStandsWhereItsCallWasMade) {
  const std::vector<Frame> bare = {frame(1, 4), frame(2, 5), frame(3, 7)};
  std::vector<TrueFrame> stack = stack_;
  const auto place = [](auto& one, uintptr_t pc, uintptr_t sp) { one.pc = pc, one.sp = sp; };
  place(stack[0], 0x10, 0x700);
  place(stack[1], 0x20, 0x740);
  stack[1].extended_sp = 0x730;
  const auto at = [&](uintptr_t pc, uintptr_t sp, uintptr_t caller_pc, uintptr_t caller_sp) {
    std::vector<Frame> frames = bare;
    place(frames[0], pc, sp);
    place(frames[1], caller_pc, caller_sp);
    place(frames[2], 0x99, 0x999);  // nothing is known of where that is
    return frames;
  };
  const auto judged = [&](const std::vector<Frame>& frames, const NotedPlace& noted = {}) {
    const Judgement judgement =
        judge(frames, stack, traits_of(WalkerId::asgst_iterator), methods_, false, noted);
    return std::string(judgement.clause) + " " + std::to_string(judgement.at);
  };
  EXPECT_EQ(judged(bare), " 0");
  EXPECT_EQ(judged(at(0x10, 0x700, 0x20, 0x740)), " 0");
  EXPECT_EQ(judged(at(0x10, 0x700, 0x20, 0x730)), " 0");
  EXPECT_EQ(judged(at(0x10, 0x700, 0x20, 0x738)), "frame-elsewhere 1");
  EXPECT_EQ(judged(at(0x10, 0x700, 0x24, 0x740)), "frame-elsewhere 1");
  EXPECT_EQ(judged(at(0x10, 0x708, 0x20, 0x740)), "frame-elsewhere 0");
  EXPECT_EQ(judged(at(0x18, 0x700, 0x20, 0x740)), "frame-elsewhere 0");
  const NotedPlace noted = {0x18, 0x6f0};
  EXPECT_EQ(judged(at(0x18, 0x6f0, 0x20, 0x740), noted), " 0");
  EXPECT_EQ(judged(at(0x18, 0x700, 0x20, 0x740), noted), "frame-elsewhere 0");
  EXPECT_EQ(judged(at(0x10, 0x700, 0x18, 0x6f0), noted), "frame-elsewhere 1");
  EXPECT_EQ(said(at(0x18, 0x708, 0x24, 0x738), stack), "right") << "of no added walker";
  EXPECT_EQ(judged({frame(2, 5), frame(3, 7)}), "innermost-frame-left-out 0");
  stack[0].sort = TrueFrame::Sort::optional;
  std::vector<Frame> without = at(0, 0, 0x10, 0x700);
  without.erase(without.begin());
  EXPECT_EQ(judged(without), " 0") << "the method that is entered is not seen";
  const std::vector<Frame> entered = at(0x18, 0x708, 0x20, 0x740);
  EXPECT_EQ(judged(entered), "frame-elsewhere 0");
  EXPECT_EQ(judge(entered, stack, traits_of(WalkerId::asgst_frame), methods_, false).clause, "")
      << "it may be the caller";
}

}  // namespace
}  // namespace framestorm::stepping
