#include "harness/victim/undo_log.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace framestorm {
namespace {

class UndoLogTest : public testing::Test {
 protected:
  static uintptr_t address_of(void* location) { return reinterpret_cast<uintptr_t>(location); }
  uintptr_t word(size_t index) { return address_of(&words_[index]); }

  std::array<uint64_t, UndoLog::kCapacity + 1> words_ = {};
  UndoLog log_;
};

TEST_F(UndoLogTest, WritesAndRestoresWordsOfBothSizes) {
  words_ = {0x1111111122222222U, 0x3333333344444444U};
  ASSERT_TRUE(log_.write(word(0), 0xaaaaaaaabbbbbbbbU, 8));
  ASSERT_TRUE(log_.write(word(1), 0xccccccccddddddddU, 4));
  EXPECT_EQ(words_[0], 0xaaaaaaaabbbbbbbbU);
  EXPECT_EQ(words_[1], 0x33333333ddddddddU) << "only the low four bytes are written";
  EXPECT_EQ(log_.size(), 2U);
  EXPECT_TRUE(log_.revert());
  EXPECT_EQ(words_[0], 0x1111111122222222U);
  EXPECT_EQ(words_[1], 0x3333333344444444U);
  EXPECT_EQ(log_.size(), 0U);
}

TEST_F(UndoLogTest, RestoresTheFirstValueOfALocationWrittenTwice) {
  words_[0] = 1;
  ASSERT_TRUE(log_.write(word(0), 2, 8));
  ASSERT_TRUE(log_.write(word(0), 3, 8));
  EXPECT_TRUE(log_.revert());
  EXPECT_EQ(words_[0], 1U);
}

TEST_F(UndoLogTest, RestoresOverlappingWritesNewestFirst) {
  words_ = {0x0807060504030201U, 0x100f0e0d0c0b0a09U};
  const auto before = words_;
  ASSERT_TRUE(log_.write(word(0), ~uint64_t{0}, 8));
  ASSERT_TRUE(log_.write(word(0) + 4, 0, 8));  // the second half of one word, the first of the next
  ASSERT_TRUE(log_.write(word(0) + 2, 0x5555, 4));
  EXPECT_TRUE(log_.untouched());
  EXPECT_TRUE(log_.revert());
  EXPECT_EQ(words_, before);
}

TEST_F(UndoLogTest, IsUntouchedUntilSomebodyElseWrites) {
  EXPECT_TRUE(log_.untouched());
  ASSERT_TRUE(log_.write(word(0), 7, 8));
  ASSERT_TRUE(log_.write(word(1), 8, 4));
  EXPECT_TRUE(log_.untouched());
  words_[1] |= uint64_t{1} << 40;  // outside the four bytes
  EXPECT_TRUE(log_.untouched());
  words_[1] ^= 1;
  EXPECT_FALSE(log_.untouched());
  words_[1] ^= 1;
  words_[0] = 6;
  EXPECT_FALSE(log_.untouched());
}

TEST_F(UndoLogTest, ComparesOnlyTheNewestOfOverlappingWrites) {
  ASSERT_TRUE(log_.write(word(0), 1, 8));
  ASSERT_TRUE(log_.write(word(0), 2, 8));
  EXPECT_TRUE(log_.untouched());
  words_[0] = 1;  // what the older write left
  EXPECT_FALSE(log_.untouched());
}

TEST_F(UndoLogTest, RefusesMoreThanItsCapacity) {
  for (size_t i = 0; i < UndoLog::kCapacity; ++i) ASSERT_TRUE(log_.write(word(i), i + 1, 8));
  EXPECT_FALSE(log_.write(word(UndoLog::kCapacity), 99, 8));
  EXPECT_EQ(words_[UndoLog::kCapacity], 0U) << "a refused write must not happen";
  EXPECT_TRUE(log_.revert());
  for (const uint64_t value : words_) EXPECT_EQ(value, 0U);
  EXPECT_TRUE(log_.write(word(0), 5, 8)) << "a reverted log is empty again";
}

}  // namespace
}  // namespace framestorm
