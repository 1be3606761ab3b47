// What a run keeps of its findings, on a live JVM.
#include "harness/executor/survey.h"

#include <link.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "harness/base/test_folder.h"
#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;

// Keeps the loader's lock, as a thread may that was halted while it loaded a library or printed a
// stack.
class LoaderLock {
 public:
  LoaderLock() {
    while (!held_) std::this_thread::yield();
  }
  ~LoaderLock() {
    wanted_ = false;
    holder_.join();
  }
  LoaderLock(const LoaderLock&) = delete;
  LoaderLock& operator=(const LoaderLock&) = delete;

 private:
  static int hold(dl_phdr_info*, size_t, void* self) {
    auto* lock = static_cast<LoaderLock*>(self);
    lock->held_ = true;
    while (lock->wanted_) std::this_thread::yield();
    return 1;
  }

  std::atomic<bool> held_{false};
  std::atomic<bool> wanted_{true};
  std::thread holder_{[this] { dl_iterate_phdr(&hold, this); }};
};

class SurveyTest : public JvmTest {};

TEST_F(SurveyTest, WaitsForNoLockOfAHaltedThread) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(std::make_unique<FakeWalker>(
      executor().walker(WalkerId::asgct), [](const FakeWalk&) -> int32_t { return -11; }));
  const TestFolder folder;
  RunCounts counts;
  RunWriter writer(folder.path(), session(), counts);
  Survey survey(session(), writer);
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const LoaderLock lock;
  Input input;
  input.scenario = ScenarioId::c1;
  input.walker = WalkerId::plugin;
  loop([&] {
    const Outcome outcome = executor().execute(input);
    counts.note(input, outcome);
    survey.take(input, outcome);
  });
  EXPECT_EQ(counts.findings(), 1U);
  EXPECT_FALSE(std::filesystem::is_empty(folder.path() / "artifacts"));
}

// One cause has one key, whichever victim shows it; and each victim leaves an input that does.
TEST_F(SurveyTest, KeepsAnInputOfEachVictimOfABrokenContract) {
  const std::vector<ScenarioId> scenarios = {
      ScenarioId::c1,     ScenarioId::osr,      ScenarioId::parked, ScenarioId::c2_inlined,
      ScenarioId::digest, ScenarioId::sleeping, ScenarioId::lambda, ScenarioId::large_frame};
  static_assert(Survey::kArtifactsPerKey < 8);
  start(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(std::make_unique<FakeWalker>(
      executor().walker(WalkerId::asgct), [](const FakeWalk&) -> int32_t { return -11; }));
  const TestFolder folder;
  {
    RunCounts counts;
    RunWriter writer(folder.path(), session(), counts);
    Survey survey(session(), writer);
    halt(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    Input input;
    input.walker = WalkerId::plugin;
    loop([&] {
      for (const ScenarioId scenario : scenarios) {
        input.scenario = scenario;
        survey.take(input, executor().execute(input));
        survey.take(input, executor().execute(input));
      }
    });
    survey.write_counts();
  }
  std::set<std::string> keys;
  std::set<std::string> victims;
  nlohmann::json last;
  std::ifstream lines(folder.path() / "findings.jsonl");
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line);
    keys.insert(last["key"]);
    if (last["type"] == "finding") victims.insert(last["victim"]);
  }
  EXPECT_EQ(keys.size(), 1U);
  EXPECT_EQ(victims.size(), scenarios.size());
  EXPECT_EQ(last["victims"].size(), scenarios.size());
  EXPECT_EQ(last["victims"]["osr"], 2);
  EXPECT_EQ(last["count"], 2 * scenarios.size());
}

// Numbers do not tell keys apart; a loud defect must not take all the room of a quiet one.
TEST_F(SurveyTest, KeepsAnInputOfEachWayInWhichAnUnmutatedWalkIsWrong) {
  static int walks;
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(
      std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct),
                                   [](const FakeWalk&) { return ++walks == 40 ? -77 : -11; }));
  executor().set_rigour(Rigour::per_walk);
  const TestFolder folder;
  RunCounts counts;
  RunWriter writer(folder.path(), session(), counts);
  Survey survey(session(), writer);
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  loop([&] {
    Input input;
    input.scenario = ScenarioId::c1;
    input.walker = WalkerId::plugin;
    for (int i = 0; i < 60; ++i) survey.take(input, executor().execute(input));
  });
  std::set<std::string> details;
  std::ifstream lines(folder.path() / "findings.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json found = nlohmann::json::parse(line);
    if (found["type"] == "finding") details.insert(found["detail"]);
  }
  EXPECT_EQ(details, (std::set<std::string>{"result -11 is not documented",
                                            "result -77 is not documented"}));
}

}  // namespace
}  // namespace framestorm
