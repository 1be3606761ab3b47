// The comparison with the reference, on traces made by hand.
#include "harness/oracles/reference.h"

#include <gtest/gtest.h>

namespace framestorm {
namespace {

class ReferenceTest : public testing::Test {
 protected:
  ReferenceTest() {
    for (const char* name :
         {"java/util/Top.call", "framestorm/A.leaf", "framestorm/A.middle", "framestorm/A.run",
          "java/lang/Thread.run", "jdk/internal/vm/Continuation.enterSpecial",
          "jdk/internal/vm/Continuation.run"}) {
      names_.emplace_back(name);
      methods_.add(id(names_.size() - 1), {name, 100});
    }
    methods_.add(id(names_.size()), {"java/util/Native.call", -1});
    methods_.absorb();
  }
  static jmethodID id(size_t index) { return reinterpret_cast<jmethodID>(16 * (index + 1)); }
  static Frame frame(size_t method, int32_t bci) { return {id(method), bci, 0, 0}; }
  std::string compare(const std::vector<Frame>& trace) const {
    return compare_with_reference(trace, reference_, methods_);
  }

  std::vector<std::string> names_;
  MethodTable methods_;
  const std::vector<Frame> reference_ = {frame(1, 7), frame(2, 20), frame(3, 30), frame(4, 40)};
};

TEST_F(ReferenceTest, EqualTracesAgree) { EXPECT_EQ(compare(reference_), ""); }

TEST_F(ReferenceTest, TheInnermostOwnFrameMayHaveMovedOn) {
  EXPECT_EQ(compare({frame(1, 99), frame(2, 20), frame(3, 30), frame(4, 40)}), "");
  EXPECT_EQ(compare({frame(0, 1), frame(1, 7), frame(2, 20), frame(3, 30), frame(4, 40)}), "");
}

TEST_F(ReferenceTest, WhatTheInnermostOwnFrameReturnedToMayHaveMovedOn) {
  EXPECT_EQ(compare({frame(2, 1), frame(1, 99), frame(2, 20), frame(3, 30), frame(4, 40)}), "");
  EXPECT_NE(compare({frame(2, 1), frame(1, 7), frame(2, 21), frame(3, 30), frame(4, 40)}), "");
}

TEST_F(ReferenceTest, AnOuterFrameAtAnotherBciIsReported) {
  EXPECT_NE(compare({frame(1, 7), frame(2, 21), frame(3, 30), frame(4, 40)}), "");
  EXPECT_NE(compare({frame(1, 7), frame(2, 20), frame(3, 30), frame(4, 41)}), "");
}

TEST_F(ReferenceTest, AnUnknownBciIsNotCompared) {
  EXPECT_EQ(compare({frame(1, 7), frame(2, 20), frame(3, -3), frame(4, 40)}), "");
}

TEST_F(ReferenceTest, AMissingASwappedAndASurplusFrameAreReported) {
  EXPECT_NE(compare({frame(1, 7), frame(2, 20), frame(4, 40)}), "");
  EXPECT_NE(compare({frame(1, 7), frame(3, 30), frame(2, 20), frame(4, 40)}), "");
  EXPECT_NE(compare({frame(1, 7), frame(2, 20), frame(2, 20), frame(3, 30), frame(4, 40)}), "");
  EXPECT_NE(compare({frame(1, 7), frame(2, 20), frame(3, 30)}), "") << "without the outermost";
}

TEST_F(ReferenceTest, AnUnnamedNativeMethodIsAnyAndNoOther) {
  Frame unnamed;
  unnamed.unnamed = true;
  unnamed.bci = kNoBci;
  const std::vector<Frame> trace = {frame(1, 7), unnamed, frame(3, 30), frame(4, 40)};
  EXPECT_EQ(
      compare_with_reference(
          trace, {frame(1, 7), frame(names_.size(), -1), frame(3, 30), frame(4, 40)}, methods_),
      "");
  EXPECT_EQ(compare(trace),
            "frame 2 from the base is ?.native@-1, the reference has framestorm/A.middle@20");
}

TEST_F(ReferenceTest, FramesThatAreFrozenMayBeLeftOutAndNoOthers) {
  const auto compare_thawed = [this](const std::vector<Frame>& trace) {
    return compare_with_reference(trace, reference_, methods_, /*outer_frozen=*/true);
  };
  const Frame enter = frame(5, -3);
  const Frame carrier = frame(6, 50);
  EXPECT_EQ(compare_thawed({frame(1, 99), frame(2, 20), enter, carrier}), "");
  EXPECT_EQ(compare_thawed({frame(0, 1), frame(1, 7), enter, carrier}), "");
  EXPECT_NE(compare_thawed({frame(1, 7), frame(2, 21), enter, carrier}), "") << "another bci";
  EXPECT_NE(compare_thawed({frame(1, 7), frame(3, 30), enter, carrier}), "") << "one left out";
  EXPECT_NE(compare_thawed({frame(2, 20), frame(3, 30), enter, carrier}), "") << "no innermost";
  EXPECT_NE(compare_thawed({enter, carrier}), "") << "none of its own";
  EXPECT_NE(compare_thawed({frame(1, 7), frame(2, 20)}), "") << "not entered";
  EXPECT_NE(compare_thawed({frame(1, 7), frame(2, 20), frame(3, 30), frame(4, 40), enter}), "")
      << "nothing left out";
}

TEST_F(ReferenceTest, SaysWhichFrameDiffers) {
  const std::string difference = compare({frame(1, 7), frame(2, 21), frame(3, 30), frame(4, 40)});
  EXPECT_NE(difference.find("framestorm/A.middle@21"), std::string::npos) << difference;
  EXPECT_NE(difference.find("framestorm/A.middle@20"), std::string::npos) << difference;
}

}  // namespace
}  // namespace framestorm
