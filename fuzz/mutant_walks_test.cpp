#include "fuzz/mutant_walks.h"

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_folder.h"
#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/executor/poll_answer.h"
#include "harness/jvm/mutant_file_fixture.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;
using jvm_test::MutantFile;

enum : uint8_t {
  kRefuses = 1,
  kIsEquivalent,
  kFickle,
  kWrites,
  kRefusesThere,
  kNeverActs,
  kCount = kNeverActs
};

MutantFile* file = nullptr;
JNIEnv* env = nullptr;
int turns = 0;

// AsyncGetCallTrace, as if libjvm had these mutants.
int32_t walk_with_mutants(const FakeWalk& walk) {
  file->act({kRefuses, kIsEquivalent, kFickle});
  const int64_t in_force = (*file)->in_force;
  const bool wrong = in_force == kRefuses || (in_force == kFickle && turns++ == 0);
  return wrong ? walk.depth + 1 : walk.right();
}

class MutantWalksTest : public JvmTest {
 protected:
  MutantWalksTest() { file = &file_; }

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
  MutantFile file_{folder_ / "counts", kCount};
};

TEST_F(MutantWalksTest, TheOneThatShowsIsKilledAndToldOnce) {
  halt_for(&walk_with_mutants);
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  {
    RunWriter writer(folder_ / "out", session(), counts);
    MutantWalks mutants(file_.path(), session(), writer, signatures);
    const Input input = plain();
    loop([&] {
      for (int i = 0; i < 3; ++i) {
        mutants.begin();
        mutants.look(input, executor().execute(input));
      }
    });
  }
  EXPECT_EQ(file_->tried[kRefuses].fate, LibjvmMutantFile::kKilled);
  EXPECT_EQ(file_->tried[kRefuses].tries, 1U);
  EXPECT_EQ(file_->tried[kRefuses].differed, 1U);
  EXPECT_EQ(file_->tried[kFickle].differed, 1U);
  EXPECT_EQ(file_->tried[kIsEquivalent].differed, 0U);
  for (const int64_t number : {kIsEquivalent, kFickle}) {
    EXPECT_EQ(file_->tried[number].fate, LibjvmMutantFile::kOpen) << number;
    EXPECT_EQ(file_->tried[number].tries, 3U) << number;
  }
  EXPECT_EQ(file_->tried[kNeverActs].tries, 0U);
  std::ifstream findings(folder_ / "out/findings.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(findings, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("\"mutant\":1"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("count-exceeds-depth"), std::string::npos) << lines[0];
}

// Wrong for good once a mutant was in force.
int32_t walk_with_residue(const FakeWalk& walk) {
  file->act({kRefuses, kIsEquivalent});
  const int64_t in_force = (*file)->in_force;
  if (in_force == kRefuses) turns = 1;
  return turns != 0 && in_force == LibjvmMutantFile::kNone ? walk.depth + 1 : walk.right();
}

TEST_F(MutantWalksTest, WhatOneLeavesBehindKillsItWhenItIsTriedAlone) {
  halt_for(&walk_with_residue);
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  const auto fates = [&] {
    return std::pair(file_->tried[kRefuses].fate, file_->tried[kIsEquivalent].fate);
  };
  const auto in_a_process = [&] {
    turns = 0;
    MutantWalks mutants(file_.path(), session(), writer, signatures);
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

// It answers as without it.
int32_t walk_that_writes(const FakeWalk& walk) {
  file->act({kWrites});
  if ((*file)->in_force == kWrites) env->DeleteLocalRef(env->NewLocalRef(walk.target->thread));
  return walk.right();
}

TEST_F(MutantWalksTest, OneThatOnlyWritesIsKilledAsOneTryIsWatched) {
  halt_for(&walk_that_writes);
  ASSERT_FALSE(HasFatalFailure());
  env = session().jvm().env();
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  MutantWalks mutants(file_.path(), session(), writer, signatures);
  const Input input = plain();
  loop([&] {
    mutants.begin();
    mutants.look(input, executor().execute(input));
  });
  EXPECT_EQ(file_->tried[kWrites].fate, LibjvmMutantFile::kKilled);
  EXPECT_EQ(file_->tried[kWrites].differed, 0U);
}

// Its answer to a stale request may be none, and may not fault.
class Answering final : public jvm_test::AnsweringWalker {
 public:
  int32_t walk(const WalkTarget&, std::byte*, int32_t, void* context) noexcept override {
    walks_with_a_mutant += (*file)->in_force == LibjvmMutantFile::kNone ? 0 : 1;
    pc = get_register(*static_cast<ucontext_t*>(context), Register::pc);
    if (first_pc == 0) first_pc = pc;
    return kWrongState;
  }
  std::optional<int32_t> answer(JNIEnv*, void*, std::byte*, int32_t) override {
    file->act({kRefuses, kIsEquivalent, kFickle, kRefusesThere});
    const int64_t in_force = (*file)->in_force;
    const bool shows = in_force == kRefuses || (in_force == kFickle && turns++ == 0) ||
                       (in_force == kRefusesThere && pc == first_pc);
    if (shows) return std::nullopt;
    return kWrongState;
  }
  static int walks_with_a_mutant;
  static uintptr_t pc, first_pc;
};
int Answering::walks_with_a_mutant = 0;
uintptr_t Answering::pc = 0, Answering::first_pc = 0;

TEST_F(MutantWalksTest, TheOneThatShowsInAnAnswerIsKilled) {
  halt_for(&walk_with_mutants);
  ASSERT_FALSE(HasFatalFailure());
  executor().replace_walker(std::make_unique<Answering>());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  MutantWalks mutants(file_.path(), session(), writer, signatures);
  Input input = plain();
  input.walker = WalkerId::jfr_trace;
  Mutation mutation;
  mutation.reg = Register::sp;
  mutation.value.kind = ValueKind::real_sp;
  mutation.value.delta = -64;
  input.mutations.push_back(mutation);
  turns = 0;
  loop([&] {
    const Outcome walked = executor().execute(input);
    const Input there = writer.with_halt(input);
    ASSERT_FALSE(there.halt.any);
    Outcome answer;
    session().on_control_thread([&] {
      mutants.begin();
      answer = answer_at_poll(session(), input, walked);
    });
    mutants.look_at_answer(there, answer, 1);
  });
  for (const int64_t number : {kRefuses, kRefusesThere}) {
    EXPECT_EQ(file_->tried[number].fate, LibjvmMutantFile::kKilled) << number;
  }
  for (const int64_t number : {kIsEquivalent, kFickle}) {
    EXPECT_EQ(file_->tried[number].fate, LibjvmMutantFile::kOpen) << number;
    EXPECT_EQ(file_->tried[number].tries, 1U) << number;
    EXPECT_EQ(file_->tried[number].differed, 0U) << number;
  }
  EXPECT_EQ(file_->tried[kNeverActs].tries, 0U);
  EXPECT_EQ(Answering::walks_with_a_mutant, 0);
  EXPECT_FALSE(mutants.spoiled());
}

TEST_F(MutantWalksTest, OneThatEndedTheProcessIsNotTriedAgain) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  file_->trying = kRefuses;
  const MutantWalks mutants(file_.path(), session(), writer, signatures);
  EXPECT_EQ(file_->tried[kRefuses].fate, LibjvmMutantFile::kDied);
  EXPECT_EQ(file_->trying, 0U);
}

TEST_F(MutantWalksTest, ALibjvmWithoutMutantsIsRefused) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  RunCounts counts;
  Signatures signatures;
  RunWriter writer({}, session(), counts);
  file_->count = 0;
  EXPECT_THROW(MutantWalks(file_.path(), session(), writer, signatures), SetupError);
}

}  // namespace
}  // namespace framestorm
