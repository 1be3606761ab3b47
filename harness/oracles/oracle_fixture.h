// An executor with one more walker: AsyncGetCallTrace, with what a test makes of it.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/victim/scenario.h"

namespace framestorm::oracle_test {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;

inline uint64_t* stack_word(const FakeWalk& walk, uintptr_t offset) {
  return reinterpret_cast<uint64_t*>(get_register(*walk.context, Register::sp) + offset);
}

struct Defect {
  const char* name;
  FakeWalker::Body walk;
  std::vector<std::string> expected;  // all that is reported
};

inline std::ostream& operator<<(std::ostream& out, const Defect& defect) {
  return out << defect.name;
}

class OracleTest : public jvm_test::JvmTest {
 protected:
  void start(FakeWalker::Body walk, const std::vector<ScenarioId>& scenarios = {ScenarioId::c1}) {
    JvmTest::start(scenarios, {.cpu_ns = 50'000'000, .wall_ns = 5'000'000'000});
    if (HasFatalFailure()) return;
    executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct), walk));
  }
  void halt_where_it_mostly_is(ScenarioId scenario) {
    const TopCode top = scenario_info(scenario).top;
    if (top == TopCode::nmethod || top == TopCode::interpreter) {
      halt_in_java(scenario);
    } else {
      halt(scenario);
    }
  }
  static Input input(Mode mode, ScenarioId scenario = ScenarioId::c1) {
    Input input;
    input.scenario = scenario;
    input.mode = mode;
    input.walker = WalkerId::plugin;
    return input;
  }
};

}  // namespace framestorm::oracle_test
