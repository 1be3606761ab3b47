// Oracles that are added in one file (added_oracle_fixture.cpp) are heard in fuzzing, and what they
// cannot do there is said. Replay: scripts/native/replay_test.cpp; stress: stress/agent.
#include "harness/oracles/oracle_set.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "harness/base/test_folder.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/executor/run_writer.h"
#include "harness/oracles/added_oracle_fixture.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::JvmTest;

class OracleSetTest : public JvmTest {
 protected:
  static Input plain() {
    Input input;
    input.scenario = ScenarioId::c1;
    return input;
  }
};

TEST(OracleRegistry, LooksAndReportsInTheOrderThatOraclesSay) {
  std::vector<std::string_view> names;
  for (const OracleRegistration* each : OracleRegistration::all()) {
    names.push_back(each->declaration.name);
  }
  const std::vector<std::string_view> expected = {
      "fault",   "sanitizer",   "memory",        "writes",   "signal-safety", "contract",
      "places",  "collection",  "no-collection", "exiting",  "kinds",         "calls",
      "prefix",  "determinism", "options",       "context",  "truth",         "native-frames",
      "request", "agreement",   "added",         "careless", "halted"};
  EXPECT_EQ(names, expected);
}

TEST(OracleRegistry, WhoNeedsMoreThanThereIsIsNotJudged) {
  const OracleSet oracles({Need::incidents, Need::unsafe_calls, Need::trace});
  const auto left = oracles.not_judged();
  const auto why = [&](std::string_view name) {
    const auto found = std::ranges::find(left, name, &OracleSet::NotJudged::oracle);
    return found == left.end() ? std::string() : found->why;
  };
  EXPECT_EQ(why("truth"), "it needs a scenario's known frames");
  EXPECT_EQ(why("memory"), "it needs guarded frames");
  EXPECT_EQ(why("prefix"), "it needs further walks");
  EXPECT_EQ(why("halted"), "it needs a halted world");
  EXPECT_EQ(why("fault"), "");
  EXPECT_EQ(left.size(), 16U);
}

TEST_F(OracleSetTest, AnAddedOracleIsHeard) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(clauses_of(walk(plain()).findings), std::vector<std::string>{});
  jvm_test::switch_added_oracles_on();
  const std::vector<std::string> expected = {"contract:added", "contract:halted"};
  const std::vector<Finding> findings = walk(plain()).findings;
  EXPECT_EQ(clauses_of(findings), expected);
  for (const Finding& finding : findings) EXPECT_EQ(finding.oracle, finding.clause);
}

TEST_F(OracleSetTest, ARunSaysWhatWasNotJudged) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto last_stats = [&](int walks) {
    const TestFolder folder;
    const RunCounts counts;
    RunWriter writer(folder.path(), session(), counts);
    loop([&] {
      for (int i = 0; i < walks; ++i) executor().execute(plain());
    });
    writer.write_stats();
    std::ifstream file(folder.path() / "stats.jsonl");
    return nlohmann::json::parse(file);
  };
  EXPECT_EQ(last_stats(1)["not_judged"], nlohmann::json::object());
  jvm_test::switch_added_oracles_on();
  const nlohmann::json expected = {
      {"careless", "it asked 2 times for a walk that it does not declare"}};
  EXPECT_EQ(last_stats(2)["not_judged"], expected);
}

// What an execution found stays when the next one is made.
TEST_F(OracleSetTest, FindingsAreTheOutcomes) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Outcome first;
  loop([&] {
    jvm_test::switch_added_oracles_on();
    first = executor().execute(plain());
    Input other = plain();
    other.call.depth = DepthKind::one;
    executor().execute(other);
  });
  ASSERT_FALSE(first.findings.empty());
  for (const Finding& finding : first.findings) EXPECT_EQ(finding.input, plain());
}

}  // namespace
}  // namespace framestorm
