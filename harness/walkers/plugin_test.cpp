// A walker built outside the harness's own build (example/README.md), found right or wrong through
// the C ABI.
#include <algorithm>
#include <fstream>
#include <random>

#include "harness/base/test_folder.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/random_input.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

bool reports(const Walked& walked, const std::string& clause) {
  return std::ranges::count(clauses_of(walked.findings), clause) > 0;
}

class PluginTest : public JvmTest {
 protected:
  void start_with(const std::string& shared_object, const std::vector<ScenarioId>& scenarios) {
    start(scenarios);
    if (HasFatalFailure()) return;
    executor().add_walker(make_plugin(session().jvm(), shared_object));
  }
  static Input input(ScenarioId scenario) {
    Input input;
    input.scenario = scenario;
    input.walker = WalkerId::plugin;
    return input;
  }
};

TEST_F(PluginTest, TheExampleWalksUnmutatedVictims) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::native_method, ScenarioId::jni_sandwich,
                                             ScenarioId::interpreted_recursion, ScenarioId::c1,
                                             ScenarioId::native_unattached};
  start_with(FRAMESTORM_EXAMPLE_WALKER, scenarios);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      Input plain = input(scenario);
      plain.mode = mode;
      const Walked walked = walk(plain);
      EXPECT_TRUE(walked.findings.empty()) << name_of(scenario) << ": " << explain(walked);
      ASSERT_GT(walked.frames.size(), 0U) << name_of(scenario);
      EXPECT_EQ(walked.frames[0].pc, victim(scenario).pc);
      EXPECT_EQ(walked.frames[0].sp, victim(scenario).sp);
      for (size_t i = 1; i < walked.frames.size(); ++i) {
        EXPECT_GT(walked.frames[i].sp, walked.frames[i - 1].sp);
        EXPECT_LE(walked.frames[i].sp, victim(scenario).stack_base);
      }
    }
  }
  // Interpreted frames keep frame pointers: forty of one method at least.
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_GT(walk(input(ScenarioId::interpreted_recursion)).frames.size(), 40U);
}

TEST_F(PluginTest, TheExampleSurvivesMutatedVictims) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::native_method,
                                             ScenarioId::interpreted_recursion, ScenarioId::c1};
  start_with(FRAMESTORM_EXAMPLE_WALKER, scenarios);
  ASSERT_FALSE(HasFatalFailure());
  TestRng rng(3);
  int mutated = 0;
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (int i = 0; i < 300; ++i) {
      Input any = random_input(rng);
      any.scenario = scenario;
      any.walker = WalkerId::plugin;
      const Walked walked = walk(any);
      mutated += walked.outcome.unmutated ? 0 : 1;
      ASSERT_TRUE(walked.findings.empty()) << to_text(any) << explain(walked);
    }
  }
  EXPECT_GT(mutated, 600);
}

TEST_F(PluginTest, TheBrokenExampleIsFoundOut) {
  start_with(FRAMESTORM_BROKEN_WALKER, {ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Walked plain = walk(input(ScenarioId::interpreted_recursion));
  EXPECT_TRUE(reports(plain, "unsafe_call:malloc")) << explain(plain);
  EXPECT_FALSE(reports(plain, "fault:")) << explain(plain);

  Input shallow = input(ScenarioId::interpreted_recursion);
  shallow.call.depth = DepthKind::raw;
  shallow.call.raw_depth = 5;
  const Walked past = walk(shallow);
  EXPECT_TRUE(reports(past, "contract:writes-past-frames")) << explain(past);

  Input bad_fp = input(ScenarioId::interpreted_recursion);
  bad_fp.mutations.resize(1);
  bad_fp.mutations[0].reg = Register::fp;
  bad_fp.mutations[0].value.kind = ValueKind::raw;
  bad_fp.mutations[0].value.raw = uint64_t{7} << 60;  // above any stack, and no address
  const Walked fault = walk(bad_fp);
  EXPECT_TRUE(reports(fault, "fault:")) << explain(fault);
}

TEST_F(PluginTest, WhatIsNoWalkerIsRefusedWithTheReason) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  const auto refusal = [&](const std::string& path) -> std::string {
    try {
      make_plugin(session().jvm(), path);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal("/no/such/walker.so").find("cannot load walker plugin /no/such/walker.so"),
            std::string::npos);
  const TestFolder folder;
  const std::string text = folder / "no-walker.so";
  std::ofstream(text) << "no ELF";
  EXPECT_NE(refusal(text).find("cannot load"), std::string::npos);
  EXPECT_NE(refusal("libm.so.6").find("does not export framestorm_walker_abi"), std::string::npos);
}

}  // namespace
}  // namespace framestorm
