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

// Each ends by steps; what takes this time does not come there.
constexpr std::chrono::seconds kLimit{60};
constexpr StepLimits kSteps = {.most_steps = 12'000};

class StepTest : public jvm_test::JvmTest, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Collector, StepTest,
                         testing::Values("-XX:+UseG1GC", "-XX:G1PeriodicGCInterval=20"),
                         [](const auto& info) { return info.index == 0 ? "Idle" : "Marking"; });

TEST_P(StepTest, EachInstructionIsWalkedRight) {
  SessionOptions options;
  options.start_victims = false;
  options.jvm.extra_args = {GetParam()};
  start_session(options);
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
    Stepper stepper(session().jvm(), walkers, kSteps);
    ASSERT_EQ(step_scenario(session().victims(), stepper, scenario, kLimit, {}), "")
        << name_of(scenario);
    EXPECT_GT(stepper.counts().judged, 1000U) << name_of(scenario);
    for (const auto& [key, found] : stepper.findings()) {
      // Others are refused while a collector has stopped the world or is about to, or by asgst-frame,
      // which has pc, sp and fp only; as their headers say.
      EXPECT_FALSE(found.promised) << name_of(scenario) << ": " << key << ", " << found.position
                                   << ": " << found.finding.detail << "\n"
                                   << testing::PrintToString(found.trace) << "\n"
                                   << testing::PrintToString(found.truth);
    }
  }
}

}  // namespace
}  // namespace framestorm::stepping
