// Shared by tests that need a JVM: one session a test, so one test a process (ctest runs them so).
//
//   FRAMESTORM_TEST_JDK      folder of the JDK under test
//   FRAMESTORM_TEST_CLASSES  folder with the victims' classes, compiled for it
//
// `scripts/framestorm test` sets both. Test bodies run on the control thread (jvm_fixture.cpp has
// main()). What runs on the loop's stack may be on a victim's thread: it collects, the test judges
// afterwards.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/executor/session.h"

namespace framestorm::jvm_test {

// One walk and everything that is only valid until the next.
struct Walked {
  Outcome outcome;
  std::vector<Finding> findings;
  std::vector<Frame> frames;
  std::vector<std::string> methods;  // of the frames, innermost first
};

// "contract:bci-out-of-range", "fault:", each once.
std::vector<std::string> clauses_of(const std::vector<Finding>& findings);
// Of an unmutated walk, without the known defects of JFR's requests, which are HotSpot's own (corpus/crashes:
// jfr-cpu-time-bytecode-is-old, interpreted-method-entry-loses-compiled-frames).
std::vector<Finding> not_known(const Input& input, const std::vector<Finding>& findings);
// Clauses with their sentences, for failure messages.
std::string explain(const Walked& walked);

// A context at the end of a signal handler: its trampoline is to return to what the signal
// interrupted. The kernel's frame of a signal is the address of the trampoline, then the context.
void at_end_of_handler(ucontext_t* interrupted, ucontext_t* context);

class JvmTest : public testing::Test {
 protected:
  // Starts JVM, guard and these scenarios' victims; every oracle on every walk. Check
  // HasFatalFailure() afterwards. `jvm_args` are added to the JVM's.
  void start(const std::vector<ScenarioId>& scenarios, const GuardLimits& limits = {},
             const std::vector<std::string>& jvm_args = {});
  // A walker in a shared object, FILE[=OPTIONS], that start() gives the session.
  std::string walker_plugin_;
  // The same with other options; JDK, classes and agent are set here.
  void start_session(SessionOptions options);
  // The same for all scenarios this JDK has.
  void start_all() { start({}); }

  Session& session() { return *session_; }
  Executor& executor() { return session_->executor(); }

  // Halts the world anew; the victim of `focus` has moved. Check HasFatalFailure() for special
  // scenarios, whose victims may be missed at times: tries several times.
  void halt(ScenarioId focus, const HaltPoint& point = {});
  // The same, until the victim's thread is in Java and in the code its scenario is about. Any halt
  // may meet it elsewhere, on a busy machine more often: when a safepoint comes up, a thread in
  // Java faults on its poll and is in HotSpot's signal handler, then at the entry of SafepointBlob,
  // and AsyncGetCallTrace gives wrong frames in the one and none in the other.
  void halt_in_java(ScenarioId focus);
  // Whether a halted victim stands where ScenarioInfo says it mostly does.
  bool in_top_code(ScenarioId scenario);
  Victim& victim(ScenarioId scenario) { return session_->victims().of(scenario); }
  // Where code of HotSpot's own begins. Fails the test, and 0, where there is none.
  uintptr_t entry_of(CodeKind kind, const std::string& name);
  // HotSpot's object that describes the code at `pc`, which is in some.
  std::byte* blob_of(uintptr_t pc) {
    return const_cast<std::byte*>(session().jvm().code_map().find_blob(pc));
  }

  // World halted.
  Walked walk(const Input& input);
  // Runs body(i) `times` on one loop; the body executes inputs itself.
  void loop(const std::function<void()>& body);

 private:
  std::unique_ptr<Session> session_;
  uint64_t random_ = 1;
};

}  // namespace framestorm::jvm_test
