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

// Where three registers do for most: an interpreted method is entered that compiled code has called, and the
// call says what it passes.
void expect_entered(const Stepper& stepper) {
  size_t count = 0;
  for (const Blob& blob : stepper.catalog().blobs()) {
    if (blob.entry.name != "method entry point (kind = zerolocals)") continue;
    for (const auto& [offset, instruction] : stepper.instructions(blob)) {
      const auto& verdicts = instruction.verdicts[column_of(WalkerId::asgst_frame)];
      const auto of = [&](Verdict verdict) { return verdicts[static_cast<size_t>(verdict)]; };
      EXPECT_GE(of(Verdict::right), of(Verdict::refused)) << "+" << offset;
      ++count;
    }
  }
  EXPECT_GT(count, 10U);
}

class StepOnceTest : public jvm_test::JvmTest {};
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
  for (const WalkerId id :
       {WalkerId::asgst, WalkerId::asgct2, WalkerId::asgct2_packed, WalkerId::asgst_frame}) {
    walkers.push_back(executor().walker(id));
    ASSERT_NE(walkers.back(), nullptr);
  }
  for (const ScenarioId scenario :
       {ScenarioId::interpreted_recursion, ScenarioId::c1, ScenarioId::c2_inlined,
        ScenarioId::native_method, ScenarioId::jni_sandwich, ScenarioId::arraycopy,
        ScenarioId::vtable_dispatch, ScenarioId::method_handle, ScenarioId::exception_unwind,
        ScenarioId::class_init, ScenarioId::adapters, ScenarioId::parked,
        ScenarioId::virtual_remounted, ScenarioId::virtual_cycling}) {
    StepLimits limits = kSteps;
    // It runs for long before it yields.
    if (scenario == ScenarioId::virtual_cycling) limits.most_steps = 60'000;
    // It comes to its loop in C after a thousand more or less.
    if (scenario == ScenarioId::native_method) limits.native_steps = 256;
    Stepper stepper(session().jvm(), walkers, limits);
    ASSERT_EQ(step_scenario(session().victims(), stepper, scenario, kLimit, {}), "")
        << name_of(scenario);
    EXPECT_GT(stepper.counts().judged, 1000U) << name_of(scenario);
    if (scenario == ScenarioId::adapters) expect_entered(stepper);
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

// One time through all of them, which compiled code calls, and the interpreter for it; then a deoptimised frame
// that is to execute a bytecode again.
TEST_F(StepOnceTest, StubsAndWhatIsExecutedAgainAreWalkedRight) {
  SessionOptions options;
  options.start_victims = false;
  start_session(options);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<Walker*> walkers = {executor().walker(WalkerId::asgst),
                                  executor().walker(WalkerId::asgct2)};
  for (const ScenarioId scenario :
       {ScenarioId::math_stubs, ScenarioId::crypto_stubs, ScenarioId::code_patching}) {
    Stepper stepper(session().jvm(), walkers, {.most_steps = 100'000});
    ASSERT_EQ(step_scenario(session().victims(), stepper, scenario, kLimit, {}), "")
        << name_of(scenario);
    EXPECT_GT(stepper.counts().judged, 50'000U) << name_of(scenario);
    EXPECT_TRUE(stepper.counts().lost.empty()) << name_of(scenario);
    for (const auto& [key, found] : stepper.findings()) {
      EXPECT_FALSE(found.promised) << name_of(scenario) << ": " << key << ", " << found.position
                                   << ": " << found.finding.detail << "\n"
                                   << testing::PrintToString(found.trace) << "\n"
                                   << testing::PrintToString(found.truth);
    }
  }
}

struct Injected {
  ScenarioId scenario;
  StepEvent event;
};

class StepEventTest : public jvm_test::JvmTest, public testing::WithParamInterface<Injected> {};

INSTANTIATE_TEST_SUITE_P(
    Deoptimised, StepEventTest,
    testing::Values(
        // An exception is thrown to a frame that was deoptimised meanwhile.
        Injected{ScenarioId::exception_unwind, StepEvent::deoptimise},
        // The pc that a deoptimised frame keeps is the word at sp when its callee has returned.
        Injected{ScenarioId::vm_call, StepEvent::redefine},
        // A compiled caller of a frame that is popped.
        Injected{ScenarioId::exception_unwind, StepEvent::pop_frame}),
    [](const auto& test) {
      return test.param.event == StepEvent::redefine    ? "AtTheWordAtSp"
             : test.param.event == StepEvent::pop_frame ? "BelowAPoppedFrame"
                                                        : "OnAnExceptionsWay";
    });

TEST_P(StepEventTest, WhatIsDeoptimisedIsWalkedRight) {
  const auto [scenario, event] = GetParam();
  SessionOptions options;
  options.start_victims = false;
  options.jvm.can_pop_frames = event == StepEvent::pop_frame;
  start_session(options);
  ASSERT_FALSE(HasFatalFailure());
  StepLimits limits = kSteps;
  limits.events = {event};
  Stepper stepper(session().jvm(), {executor().walker(WalkerId::asgst)}, limits);
  constexpr size_t kRounds = 8;
  for (size_t round = 0; round < kRounds; ++round) {
    stepper.set_injecting(round > 0, round);
    ASSERT_EQ(step_scenario(session().victims(), stepper, scenario, kLimit, {}), "");
  }
  stepper.settle();
  EXPECT_GT(stepper.events().counts().at(scenario).at(event).effective, 3U);
  const Tally& tally = stepper.event_tallies().at(event)[column_of(WalkerId::asgst)];
  EXPECT_GT(tally.verdicts[static_cast<size_t>(Verdict::right)], 1000U);
  EXPECT_EQ(tally.verdicts[static_cast<size_t>(Verdict::wrong)], 0U);
  for (const auto& [key, found] : stepper.findings()) {
    ADD_FAILURE() << key << ", " << found.position << ": " << found.finding.detail << "\n"
                  << testing::PrintToString(found.trace) << "\n"
                  << testing::PrintToString(found.truth);
  }
}

}  // namespace
}  // namespace framestorm::stepping
