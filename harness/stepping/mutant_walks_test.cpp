// Mutants of a libjvm, tried at the instructions of a live JVM's scenario.
#include "harness/base/test_folder.h"
#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/jvm/mutant_file_fixture.h"
#include "harness/stepping/step_scenario.h"
#include "harness/stepping/stepper.h"

namespace framestorm::stepping {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::MutantFile;

enum : uint8_t {
  kDropsACaller = 1,
  kIsEquivalent,
  kNeverActs,
  kAllocates,
  kLeavesSomething,
  kRefuses,
  kFickle,
  kMutants = kFickle
};

MutantFile* file = nullptr;
bool left = false;
int fickle_walks = 0;

bool in_force(int64_t mutant) { return (*file)->in_force == mutant; }

int32_t walk_with_mutants(const FakeWalk& walk) {
  file->act({kDropsACaller, kIsEquivalent, kAllocates, kRefuses, kFickle});
  int32_t count = walk.right();
  const bool drops = in_force(kDropsACaller) || (in_force(kFickle) && fickle_walks++ < 2);
  if (drops && count > 2) {
    std::copy(walk.frames + 2, walk.frames + count, walk.frames);
    --count;
  }
  if (in_force(kRefuses)) return -3;
  if (in_force(kAllocates)) {
    void* volatile memory = std::malloc(64);
    std::free(memory);
  }
  return count;
}

int32_t walk_with_residue(const FakeWalk& walk) {
  file->act({kLeavesSomething});
  left |= in_force(kLeavesSomething);
  return left && in_force(LibjvmMutantFile::kNone) ? walk.depth + 1 : walk.right();
}

class StepMutantsTest : public jvm_test::JvmTest {
 protected:
  void start() {
    SessionOptions options;
    options.start_victims = false;
    start_session(options);
  }
  void SetUp() override { file = &file_; }
  void step(FakeWalker::Body walk, uint64_t steps) {
    constexpr std::chrono::seconds kLimit{60};
    FakeWalker fake(executor().walker(WalkerId::asgct), walk);
    Stepper stepper(session().jvm(), {&fake}, {.most_steps = steps});
    LibjvmMutants mutants(file_.path());
    stepper.set_mutants(&mutants);
    ASSERT_EQ(step_scenario(session().victims(), stepper, ScenarioId::c1, kLimit), "");
    spoiled_ = mutants.spoiled();
    steps_ = stepper.counts().steps;
    for (const auto& [key, found] : stepper.findings()) {
      if (found.finding.mutant != 0) killed_[found.finding.mutant] = found;
    }
  }
  const auto& tried(size_t mutant) const { return file_->tried[mutant]; }

  TestFolder folder_;
  MutantFile file_{folder_ / "counts", kMutants};
  std::map<uint64_t, StepFinding> killed_;
  bool spoiled_ = false;
  uint64_t steps_ = 0;
};

TEST_F(StepMutantsTest, ThoseThatShowAreKilledAndTold) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  step(&walk_with_mutants, 2000);
  EXPECT_EQ(tried(kDropsACaller).fate, LibjvmMutantFile::kKilled);
  EXPECT_EQ(tried(kAllocates).fate, LibjvmMutantFile::kKilled);
  EXPECT_EQ(tried(kIsEquivalent).fate, LibjvmMutantFile::kOpen);
  // Found, not found without it, and found again: as two walks may differ by chance.
  EXPECT_EQ(tried(kFickle).fate, LibjvmMutantFile::kOpen);
  EXPECT_GT(fickle_walks, 2);
  EXPECT_GT(tried(kIsEquivalent).tries, tried(kAllocates).tries);
  EXPECT_EQ(tried(kNeverActs).tries, 0U);
  EXPECT_GT(tried(kDropsACaller).differed, 0U);
  EXPECT_EQ(tried(kIsEquivalent).differed, 0U);
  EXPECT_EQ(tried(kAllocates).differed, 0U);
  ASSERT_EQ(killed_.size(), 3U);
  EXPECT_EQ(killed_.at(kDropsACaller).finding.oracle, kSequenceOracle);
  EXPECT_EQ(killed_.at(kAllocates).finding.clause, "malloc");
  // Which AsyncGetCallTrace may.
  EXPECT_EQ(killed_.at(kRefuses).finding.oracle, kGateOracle);
  EXPECT_EQ(killed_.at(kRefuses).finding.clause, "no-frames");
  EXPECT_FALSE(spoiled_);
}

TEST_F(StepMutantsTest, WhatOneLeavesBehindEndsTheProcess) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  step(&walk_with_residue, 20'000);
  EXPECT_TRUE(spoiled_);
  EXPECT_LT(steps_, 20'000U);
  EXPECT_EQ(tried(kLeavesSomething).fate, LibjvmMutantFile::kKilled);
}

}  // namespace
}  // namespace framestorm::stepping
