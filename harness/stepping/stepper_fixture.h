// The fixture of the stepper's tests: scenarios of a live JVM, stepped.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/stepping/step_scenario.h"
#include "harness/stepping/stepper.h"

namespace framestorm::stepping {

// Tests end by steps; what takes this time does not come there.
constexpr std::chrono::seconds kLimit{60};
// After as many, few scenarios come to an instruction that they have not come to before.
constexpr StepLimits kSteps = {.most_steps = 20'000};
constexpr StepLimits kMoreSteps = {.most_steps = 40'000};

class StepperTest : public jvm_test::JvmTest {
 protected:
  void start(bool can_pop_frames = false) {
    SessionOptions options;
    options.jvm.can_pop_frames = can_pop_frames;
    options.start_victims = false;
    start_session(options);
  }
  Walker* asgct() { return executor().walker(WalkerId::asgct); }
  std::string step(Stepper& stepper, ScenarioId scenario, const HaltPoint& only = {}) {
    return step_scenario(session().victims(), stepper, scenario, kLimit, only);
  }
  // The scenario's methods whose names begin so are compiled, and JVMTI has told of none. How many.
  size_t compile_and_forget(std::string_view methods) {
    Stepper stepper(session().jvm(), {asgct()}, kSteps);
    EXPECT_EQ(step(stepper, ScenarioId::exception_unwind), "");
    CodeMap& map = session().jvm().code_map();
    size_t told = 0;
    for (const CodeEntry& entry : map.entries()) {
      if (!entry.name.starts_with(methods)) continue;
      map.remove(reinterpret_cast<const void*>(entry.begin));
      ++told;
    }
    map.absorb();
    return told;
  }
  static std::set<std::string> clauses_of(const Stepper& stepper) {
    std::set<std::string> clauses;
    for (const auto& [key, found] : stepper.findings()) {
      clauses.insert(std::string(name_of(found.verdict)) + " " + found.finding.clause);
    }
    return clauses;
  }
};

}  // namespace framestorm::stepping
