#include "harness/jvm/libjvm_mutants.h"

#include <gtest/gtest.h>

#include "harness/base/test_folder.h"
#include "harness/jvm/mutant_file_fixture.h"

namespace framestorm {
namespace {

using jvm_test::MutantFile;

// Of which no mutant shows.
class EqualWalks final : public LibjvmMutants::Walks {
 public:
  void begin_try(size_t) override {}
  void end_try() override {}
  std::vector<uint64_t> walk() override { return found; }
  uint64_t answer() const override { return 0; }
  bool was_made() const override { return made; }
  bool goes_on() const override { return true; }
  void killed(size_t, uint64_t) override {}

  std::vector<uint64_t> found;  // by each walk
  bool made = true;
};

class LibjvmMutantsTest : public ::testing::Test {
 protected:
  static constexpr size_t kRare = 9;

  void walk(std::initializer_list<size_t> acting, size_t most, size_t situation = 0) {
    mutants_.begin();
    file_.act(acting);
    mutants_.try_acting(walks_, most, situation);
  }
  uint32_t tries(size_t number) const { return file_->tried[number].tries; }

  TestFolder folder_;
  MutantFile file_{folder_ / "counts", kRare};
  LibjvmMutants mutants_{file_.path()};
  EqualWalks walks_;
};

TEST_F(LibjvmMutantsTest, OneThatActsRarelyIsTriedWheneverItActs) {
  for (int i = 0; i < 12; ++i) walk({1, 2, 3, 4, 5, 6, 7, 8}, 2);
  for (size_t number = 1; number < kRare; ++number) EXPECT_EQ(tries(number), 3U) << number;
  for (int i = 0; i < 3; ++i) walk({1, 2, 3, 4, 5, 6, 7, 8, kRare}, 1);
  EXPECT_EQ(tries(kRare), 3U);
}

// The walk before the tries was looked at by fewer oracles.
TEST_F(LibjvmMutantsTest, WhatIsFoundWithNoneInForceIsLeftBehindByNone) {
  walks_.found = {1};
  walk({1}, 1);
  EXPECT_EQ(tries(1), 0U);
  EXPECT_FALSE(mutants_.spoiled());
}

// A mutant shows, and whether nothing shows without it is not known.
class MissedWalks final : public LibjvmMutants::Walks {
 public:
  explicit MissedWalks(MutantFile& file) : file_(&file) {}

  void begin_try(size_t) override { tries_ = true; }
  void end_try() override {}
  std::vector<uint64_t> walk() override {
    const bool without = (*file_)->in_force == LibjvmMutantFile::kNone;
    made_ = !(without && tries_ && misses);
    return without ? std::vector<uint64_t>{} : std::vector<uint64_t>{1};
  }
  uint64_t answer() const override { return 0; }
  bool was_made() const override { return made_; }
  bool goes_on() const override { return true; }
  void killed(size_t, uint64_t) override {}

  bool misses = true;

 private:
  MutantFile* file_;
  bool tries_ = false, made_ = true;
};

TEST_F(LibjvmMutantsTest, WhatWasNotAskedWithNoneInForceKillsNone) {
  walks_.made = false;
  walk({1}, 1);
  EXPECT_EQ(tries(1), 0U);

  MissedWalks walks(file_);
  for (const bool misses : {true, false}) {
    walks.misses = misses;
    mutants_.begin();
    file_.act({1});
    mutants_.try_acting(walks, 1, 0);
    EXPECT_EQ(file_->tried[1].fate, misses ? LibjvmMutantFile::kOpen : LibjvmMutantFile::kKilled);
  }
}

TEST_F(LibjvmMutantsTest, ASuspectIsTriedAlone) {
  file_->tried[2].fate = LibjvmMutantFile::kSuspect;
  walk({1, 2, 3}, 3);
  EXPECT_EQ(tries(1), 1U);
  EXPECT_EQ(tries(2) + tries(3), 0U);
  walk({1, 2, 3}, 3);
  EXPECT_EQ(tries(2), 1U);
  EXPECT_EQ(tries(3), 0U);
  walk({1, 2, 3}, 3);
  EXPECT_EQ(tries(3), 1U);
}

}  // namespace
}  // namespace framestorm
