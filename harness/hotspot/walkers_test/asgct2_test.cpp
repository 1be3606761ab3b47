// AsyncGetCallTrace2 on live victims: its frame types, tiers, bcis and errors.
#include "asgct2.h"

#include <algorithm>

#include "harness/executor/jvm_fixture.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using jvm_test::JvmTest;

class Asgct2Test : public JvmTest {
 protected:
  struct Traced {
    asgct2::CallTrace trace{};
    std::vector<asgct2::CallFrame> frames;

    size_t count(uint8_t type) const {
      return static_cast<size_t>(std::count_if(
          frames.begin(), frames.end(), [&](const auto& frame) { return frame.type == type; }));
    }
  };

  // As the victim.
  Traced walk(ScenarioId scenario, jint depth = 512) {
    const auto function = reinterpret_cast<void (*)(asgct2::CallTrace*, jint, void*)>(
        session().jvm().symbol("AsyncGetCallTrace2"));
    EXPECT_NE(function, nullptr) << "test with a JDK that `framestorm jdk build` made";
    const Victim& walked = victim(scenario);
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(), walked.java_thread);
    Traced result;
    result.frames.resize(512);
    result.trace.env_id = static_cast<JNIEnv*>(walked.jni_env);
    result.trace.frames = result.frames.data();
    function(&result.trace, depth, walked.slot->context);
    result.frames.resize(static_cast<size_t>(std::max(result.trace.num_frames, 0)));
    return result;
  }
};

TEST_F(Asgct2Test, CompiledAndInlinedFramesHaveTierAndBci) {
  start({ScenarioId::c2_inlined});
  halt_in_java(ScenarioId::c2_inlined);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::c2_inlined);
  EXPECT_GT(traced.count(asgct2::FRAME_INLINE), 0U);
  EXPECT_GT(traced.count(asgct2::FRAME_JIT), 0U);
  for (const auto& frame : traced.frames) {
    if (frame.type != asgct2::FRAME_INLINE && frame.type != asgct2::FRAME_JIT) continue;
    EXPECT_NE(frame.method_id, nullptr);
    EXPECT_EQ(frame.machine_pc, nullptr);
    EXPECT_GE(frame.comp_level, 1);
    EXPECT_LE(frame.comp_level, 4);
    EXPECT_GE(frame.bci, -1);
  }
}

TEST_F(Asgct2Test, InterpretedFramesAreOfTierZero) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::interpreted_recursion);
  EXPECT_GT(traced.count(asgct2::FRAME_INTERPRETED), 2U);
  for (const auto& frame : traced.frames) {
    if (frame.type == asgct2::FRAME_INTERPRETED) EXPECT_EQ(frame.comp_level, 0);
  }
}

TEST_F(Asgct2Test, NativeMethodsAndCFramesHaveAMachinePc) {
  start({ScenarioId::jni_sandwich});
  halt(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::jni_sandwich);
  EXPECT_GT(traced.count(asgct2::FRAME_NATIVE), 0U);
  EXPECT_GT(traced.count(asgct2::FRAME_CPP), 0U);
  bool stub = false;
  for (const auto& frame : traced.frames) {
    if (frame.type == asgct2::FRAME_NATIVE) EXPECT_EQ(frame.bci, -3);
    if (frame.type == asgct2::FRAME_NATIVE || frame.type == asgct2::FRAME_CPP) {
      EXPECT_NE(frame.machine_pc, nullptr);
    }
    if (frame.type == asgct2::FRAME_CPP) {
      EXPECT_EQ(frame.method_id, nullptr);
      stub = stub || frame.comp_level == 255;
    }
  }
  EXPECT_TRUE(stub) << "the call stub between native code and Java";
}

TEST_F(Asgct2Test, ErrorsAreThoseOfAsyncGetCallTrace) {
  start({ScenarioId::c1, ScenarioId::native_unattached, ScenarioId::vm_thread});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(ScenarioId::native_unattached).trace.num_frames, -8);
  EXPECT_EQ(walk(ScenarioId::vm_thread).trace.num_frames, -8);
  EXPECT_EQ(walk(ScenarioId::c1, 0).trace.num_frames, 0);
  EXPECT_GT(walk(ScenarioId::c1).trace.num_frames, 0);
}

}  // namespace
}  // namespace framestorm
