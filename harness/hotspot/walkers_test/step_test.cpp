// The added walkers at each instruction that scenarios really execute, held to the stack as control
// flow has built it.
#include "harness/stepping/stepper.h"

#include <chrono>
#include <string>
#include <vector>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/walker_table.h"
#include "harness/stepping/step_scenario.h"

namespace framestorm::stepping {
namespace {

constexpr std::chrono::seconds kLimit{2};

class StepTest : public jvm_test::JvmTest {
 protected:
  void start() {
    SessionOptions options;
    options.start_victims = false;
    start_session(options);
  }
};

// Two have all registers. The third has pc, sp and fp, and may refuse; what it gives is right.
TEST_F(StepTest, EachInstructionIsWalkedRight) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Walker*> walkers;
  for (const WalkerId id : {WalkerId::asgst, WalkerId::asgct2, WalkerId::asgst_frame}) {
    walkers.push_back(executor().walker(id));
    ASSERT_NE(walkers.back(), nullptr);
  }
  for (const ScenarioId scenario :
       {ScenarioId::interpreted_recursion, ScenarioId::c1, ScenarioId::c2_inlined,
        ScenarioId::native_method, ScenarioId::jni_sandwich, ScenarioId::arraycopy,
        ScenarioId::vtable_dispatch, ScenarioId::method_handle, ScenarioId::exception_unwind,
        ScenarioId::class_init, ScenarioId::adapters, ScenarioId::parked,
        ScenarioId::virtual_remounted}) {
    Stepper stepper(session().jvm(), walkers, {});
    ASSERT_EQ(step_scenario(session().victims(), stepper, scenario, kLimit, {}), "")
        << name_of(scenario);
    EXPECT_GT(stepper.counts().judged, 1000U) << name_of(scenario);
    for (const auto& [key, found] : stepper.findings()) {
      const bool by_design =
          found.verdict == Verdict::refused && found.finding.input.walker == WalkerId::asgst_frame;
      EXPECT_TRUE(by_design) << name_of(scenario) << ": " << key << ", " << found.position << ": "
                             << found.finding.detail << "\n"
                             << testing::PrintToString(found.trace) << "\n"
                             << testing::PrintToString(found.truth);
    }
  }
}

}  // namespace
}  // namespace framestorm::stepping
