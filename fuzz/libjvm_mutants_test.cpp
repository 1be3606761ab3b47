#include "fuzz/libjvm_mutants.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_folder.h"
#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;

enum : uint8_t { kRefuses = 1, kIsEquivalent, kFickle, kNeverActs, kCount = kNeverActs };

LibjvmMutantFile* mapped = nullptr;
int turns = 0;

// AsyncGetCallTrace, as if libjvm had these mutants.
int32_t walk_with_mutants(const FakeWalk& walk) {
  if (mapped->in_force == LibjvmMutantFile::kNone) {
    for (const int64_t number : {kRefuses, kIsEquivalent, kFickle}) ++mapped->counts[number].acted;
  }
  const bool wrong = mapped->in_force == kRefuses || (mapped->in_force == kFickle && turns++ == 0);
  return wrong ? walk.depth + 1 : walk.right();
}

class LibjvmMutantsTest : public JvmTest {
 protected:
  LibjvmMutantsTest() {
    std::ofstream(path_).seekp(sizeof(LibjvmMutantFile) - 1).put(0);
    const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    mapped = static_cast<LibjvmMutantFile*>(
        mmap(nullptr, sizeof(LibjvmMutantFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    mapped->count = kCount;
    mapped->in_force = LibjvmMutantFile::kNone;
  }
  void TearDown() override { munmap(mapped, sizeof(LibjvmMutantFile)); }

  // The victim in its code, `walk` as the plugin.
  void halt_for(FakeWalker::Body walk) {
    start({ScenarioId::c1});
    if (HasFatalFailure()) return;
    executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct), walk));
    halt_in_java(ScenarioId::c1);
  }
  static Input plain() {
    Input input;
    input.scenario = ScenarioId::c1;
    input.walker = WalkerId::plugin;
    return input;
  }

  TestFolder folder_;
  std::filesystem::path path_ = folder_ / "counts";
};

TEST_F(LibjvmMutantsTest, TheOneThatShowsIsKilledAndToldOnce) {
  halt_for(&walk_with_mutants);
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  {
    RunWriter writer(folder_ / "out", session(), counts);
    LibjvmMutants mutants(path_, session(), writer, signatures);
    const Input input = plain();
    loop([&] {
      for (int i = 0; i < 3; ++i) {
        mutants.begin();
        mutants.look(input, executor().execute(input));
      }
    });
  }
  EXPECT_EQ(mapped->tried[kRefuses].fate, LibjvmMutantFile::kKilled);
  EXPECT_EQ(mapped->tried[kRefuses].tries, 1U);
  for (const int64_t number : {kIsEquivalent, kFickle}) {
    EXPECT_EQ(mapped->tried[number].fate, LibjvmMutantFile::kOpen) << number;
    EXPECT_EQ(mapped->tried[number].tries, 3U) << number;
  }
  EXPECT_EQ(mapped->tried[kNeverActs].tries, 0U);
  std::ifstream file(folder_ / "out/findings.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("\"mutant\":1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("count-exceeds-depth"), std::string::npos) << lines[0];
}

// Wrong for good once a mutant was in force.
int32_t walk_with_residue(const FakeWalk& walk) {
  if (mapped->in_force == LibjvmMutantFile::kNone) {
    for (const int64_t number : {kRefuses, kIsEquivalent}) ++mapped->counts[number].acted;
  }
  if (mapped->in_force == kRefuses) turns = 1;
  return turns != 0 && mapped->in_force == LibjvmMutantFile::kNone ? walk.depth + 1 : walk.right();
}

TEST_F(LibjvmMutantsTest, WhatOneLeavesBehindKillsItWhenItIsTriedAlone) {
  halt_for(&walk_with_residue);
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  const auto fates = [&] {
    return std::pair(mapped->tried[kRefuses].fate, mapped->tried[kIsEquivalent].fate);
  };
  const auto in_a_process = [&] {
    turns = 0;
    LibjvmMutants mutants(path_, session(), writer, signatures);
    const Input input = plain();
    loop([&] {
      while (!mutants.spoiled()) {
        mutants.begin();
        mutants.look(input, executor().execute(input));
      }
    });
  };
  in_a_process();
  EXPECT_EQ(fates(), std::pair(LibjvmMutantFile::kSuspect, LibjvmMutantFile::kSuspect));
  in_a_process();
  EXPECT_EQ(fates(), std::pair(LibjvmMutantFile::kKilled, LibjvmMutantFile::kSuspect));
}

TEST_F(LibjvmMutantsTest, OneThatEndedTheProcessIsNotTriedAgain) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  mapped->trying = kRefuses;
  const LibjvmMutants mutants(path_, session(), writer, signatures);
  EXPECT_EQ(mapped->tried[kRefuses].fate, LibjvmMutantFile::kDied);
  EXPECT_EQ(mapped->trying, 0U);
}

TEST_F(LibjvmMutantsTest, ALibjvmWithoutMutantsIsRefused) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  mapped->count = 0;
  EXPECT_THROW(LibjvmMutants(path_, session(), writer, signatures), SetupError);
}

}  // namespace
}  // namespace framestorm
