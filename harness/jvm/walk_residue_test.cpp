#include "harness/jvm/walk_residue.h"

#include <gtest/gtest.h>

#include <array>

namespace framestorm {
namespace {

constexpr size_t kSize = 64;
using Thread = std::array<std::byte, kSize>;

TEST(WalkResidue, OnlyBytesThatWentFromZeroToOneAreMarks) {
  Thread before = {};
  before[8] = std::byte{1};
  Thread after = before;
  after[3] = std::byte{1};   // a mark
  after[8] = std::byte{0};   // taken off
  after[20] = std::byte{7};  // a counter's low byte
  WalkResidue residue;
  residue.learn(before.data(), after.data(), kSize);
  EXPECT_EQ(residue.count(), 1U);
}

TEST(WalkResidue, MarksAreAsTheyWereAndNothingElseIsTouched) {
  const Thread before = {};
  Thread after = before;
  after[3] = after[40] = std::byte{1};
  WalkResidue residue;
  residue.learn(before.data(), after.data(), kSize);
  ASSERT_EQ(residue.count(), 2U);

  Thread thread = {};
  thread[40] = std::byte{1};  // within a walk of somebody else's
  const auto marks = residue.read(thread.data());
  thread[3] = std::byte{1};
  thread[5] = std::byte{9};
  residue.restore(thread.data(), marks);
  Thread expected = {};
  expected[40] = std::byte{1};
  expected[5] = std::byte{9};
  EXPECT_EQ(thread, expected);
}

TEST(WalkResidue, ThereAreNoMoreThanThereIsRoomFor) {
  const Thread before = {};
  Thread after;
  after.fill(std::byte{1});
  WalkResidue residue;
  residue.learn(before.data(), after.data(), kSize);
  EXPECT_EQ(residue.count(), WalkResidue::kMaxMarks);
}

}  // namespace
}  // namespace framestorm
