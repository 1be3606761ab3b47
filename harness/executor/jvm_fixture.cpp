#include "harness/executor/jvm_fixture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>
#include <thread>

#include "harness/base/hex.h"
#include "harness/input/thread_state.h"
#include "harness/jvm/modules.h"
#include "harness/victim/context.h"
#include "harness/victim/scenario.h"

namespace framestorm::jvm_test {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<std::string> clauses_of(const std::vector<Finding>& findings) {
  std::set<std::string> clauses;
  for (const Finding& finding : findings) {
    clauses.insert(std::string(name_of(finding.kind)) + ":" + finding.clause);
  }
  return {clauses.begin(), clauses.end()};
}

std::vector<Finding> not_known(const Input& input, const std::vector<Finding>& findings) {
  if (!traits_of(input.walker).chooses_its_threads) return findings;
  const bool is_of_cpu_time = (input.call.options & kJavaSampler) == 0;
  std::vector<Finding> others;
  std::ranges::copy_if(findings, std::back_inserter(others), [&](const Finding& finding) {
    return !(is_of_cpu_time && finding.clause == "old-bytecode") &&
           finding.clause != "request-skips-frames";
  });
  return others;
}

std::string explain(const Walked& walked) {
  std::string text = "result " + std::to_string(walked.outcome.result);
  for (const Finding& finding : walked.findings) {
    text +=
        "; " + std::string(name_of(finding.kind)) + ":" + finding.clause + ": " + finding.detail;
    if (finding.fault.address != 0) text += ", address " + hex(finding.fault.address);
    for (uint32_t i = 0; i < std::min<uint32_t>(finding.fault.stack_size, 4); ++i) {
      text += (i == 0 ? ", from " : " < ") + hex(finding.fault.stack[i]);
    }
  }
  for (const std::string& method : walked.methods) text += "\n  " + method;
  return text;
}

void at_end_of_handler(ucontext_t* interrupted, ucontext_t* context) {
  copy_context(*interrupted, context);
  const auto frame = reinterpret_cast<uintptr_t>(interrupted);
  set_register(context, Register::pc, read_at<uintptr_t>(interrupted, -sizeof(uintptr_t)));
  set_register(context, Register::sp, frame);
}

void JvmTest::start(const std::vector<ScenarioId>& scenarios, const GuardLimits& limits,
                    const std::vector<std::string>& jvm_args) {
  SessionOptions options;
  options.jvm.extra_args = jvm_args;
  options.scenarios = scenarios;
  options.walker_plugin = walker_plugin_;
  options.limits = limits;
  start_session(std::move(options));
}

void JvmTest::start_session(SessionOptions options) {
  const std::string jdk = environment("FRAMESTORM_TEST_JDK");
  const std::string classes = environment("FRAMESTORM_TEST_CLASSES");
  ASSERT_FALSE(jdk.empty() || classes.empty())
      << "set FRAMESTORM_TEST_JDK to a JDK's folder and FRAMESTORM_TEST_CLASSES to the folder with "
         "harness/victim/java compiled for it, or run `scripts/framestorm test`, which does both";
  options.jvm.home = jdk;
  options.jvm.class_path = {classes};
  session_ = std::make_unique<Session>(options);
  executor().set_rigour(Rigour::everything);
}

void JvmTest::halt(ScenarioId focus, const HaltPoint& point) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    if (session().halt_world(focus, point, random_ >> 16).focus_there) return;
  }
  FAIL() << "no victim of " << name_of(focus) << " in " << kTries << " halts";
}

void JvmTest::halt_in_java(ScenarioId focus) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries; ++i) {
    halt(focus);
    if (HasFatalFailure()) return;
    if (victim(focus).thread_state(session().jvm().layout()) == kThreadInJava &&
        in_top_code(focus)) {
      return;
    }
  }
  FAIL() << name_of(focus) << " was never in its own code in " << kTries << " halts";
}

bool JvmTest::in_top_code(ScenarioId scenario) {
  const ScenarioInfo& info = scenario_info(scenario);
  const uintptr_t pc = victim(scenario).pc;
  const auto position = session().jvm().code_map().describe(pc);
  switch (info.top) {
    case TopCode::any:
      return true;
    case TopCode::interpreter:
      return position && position->ref.kind == CodeKind::codelet;
    case TopCode::nmethod:
      return position && position->ref.kind == CodeKind::nmethod &&
             position->ref.name == info.top_name && position->ref.tier == info.top_tier;
    case TopCode::stub:
      return position && position->ref.kind == CodeKind::stub &&
             position->ref.name.find(info.top_name) != std::string::npos;
    case TopCode::native:
      // libjvm's functions are positions, too.
      return (!position || position->ref.kind == CodeKind::function) &&
             Modules::snapshot().find(pc) != nullptr;
  }
  return false;
}

void JvmTest::loop(const std::function<void()>& body) {
  session().run_loop([&] {
    body();
    session().on_control_thread([] {});
  });
}

uintptr_t JvmTest::entry_of(CodeKind kind, const std::string& name) {
  const auto place = session().jvm().code_map().resolve({.kind = kind, .name = name});
  EXPECT_TRUE(place) << name;
  return place.value_or(0);
}

Walked JvmTest::walk(const Input& input) {
  Walked walked;
  loop([&] {
    walked.outcome = executor().execute(input);
    walked.findings = walked.outcome.findings;
    walked.frames = executor().last_frames();
    for (const auto& frame : executor().last_trace()) walked.methods.push_back(frame.method);
  });
  return walked;
}

}  // namespace framestorm::jvm_test

// On a thread of its own: HotSpot does not like to measure the primordial thread's stack. Ends
// without exit handlers, which would run beside the JVM's threads.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int result = 1;
  std::thread control_thread([&] { result = RUN_ALL_TESTS(); });
  control_thread.join();
  std::fflush(nullptr);
  std::_Exit(result);
}
