// Stand-ins for the walkers that are built into the instrumented JDK, on any JDK: they walk with
// AsyncGetCallTrace's frames, rightly or with one thing wrong.
#pragma once

#include <array>
#include <vector>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/victim/native_unwinder.h"
#include "harness/victim/scenario.h"
#include "harness/walkers/stand_in/stand_in.h"

namespace framestorm::walker_oracle_test {

// The stack that the stand-ins give, beside AsyncGetCallTrace's frames.
struct MadeStack {
  // If not null, HotSpot's note that a collection has stopped the world, which the stand-ins do not ask.
  bool* collecting = nullptr;
  // The top frame as if it were inlined into the next.
  bool top_is_inlined = false;
  // The top frame once more, as if it were inlined into itself.
  bool one_more_inlined = false;
  // One more frame, of a method that is being entered.
  bool one_more_entered = false;
  int32_t bci_of_entered = 0;
  // If not null, one more frame, of this native method; not for queues.
  jmethodID one_more_native = nullptr;
  // One more frame, of a method handle's linker, which has no ID; not for queues.
  bool one_more_linker = false;
  // The top frame's caller left out.
  bool caller_missing = false;
  // The top frame without method and bci.
  bool top_is_nothing = false;
  // If not null, where the frame of C at the top stands.
  uintptr_t c_frame_pc = 0;
  // Where frames of native methods stand: in code of the interpreter, which tells no method.
  uintptr_t native_pc = 0;
  // Where the stub stands that C has called Java through.
  uintptr_t entry_pc = 0;
  // If not null, where the top frame stands.
  uintptr_t top_pc = 0;
  // If not null, the top frame as if it stood there, at its first bytecode, with nothing on the
  // stack.
  uintptr_t top_without_stack = 0;
  // If not null, a stub between the top frame and the frame of C, which stands there and has nothing on
  // the stack.
  uintptr_t stub_without_stack = 0;
  // Of C and C++, which the victim was halted in; innermost first.
  std::vector<NativeFrame> c_frames;
  // In place of the two below the Java frames.
  std::vector<NativeFrame> below_java;
};
extern MadeStack made;

// Where the made-up frames of C stand.
extern const uintptr_t kPcOfC;

// AsyncGetCallTrace's frames with made-up registers, between those of C. For Control::stack.
size_t stack_of_victim(void* context, stand_in::Frame* out, size_t room);

class WalkerOracleTest : public jvm_test::JvmTest {
 protected:
  // With the stand-ins for walkers, and AsyncGetCallTrace for their frames.
  void start(const std::vector<ScenarioId>& scenarios);
  // The test is skipped where the JDK has no such scenario.
  void start_if_had(ScenarioId scenario);
  // The victim of `scenario` halted in its own code, the stand-ins right.
  void stand(ScenarioId scenario);
  // The same of a victim that is halted already.
  void stand_by(ScenarioId scenario);
  // start() and stand(). False after a failure.
  bool start_and_stand(ScenarioId scenario);
  // The same, the victim halted wherever it is.
  bool start_and_halt(ScenarioId scenario);
  // By a walk of `input`: findings of that clause of a contract.
  int64_t times_reported(const Input& input, std::string_view clause);
  void expect_frames_of_c_below(ScenarioId scenario, std::string_view entry);

  static Input input(WalkerId walker, Mode mode = Mode::separate_thread);
  // Of a context that differs from the victim's in a register that leads nobody.
  static Input mutated_input(WalkerId walker);
  static Walker* asgct();

  stand_in::Control* control_ = nullptr;
  NativeUnwinder unwinder_;
};

}  // namespace framestorm::walker_oracle_test
