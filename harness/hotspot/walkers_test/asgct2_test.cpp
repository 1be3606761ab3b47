// AsyncGetCallTrace2 on live victims, in both of its layouts: frame types, tiers, bcis and errors.
#include "asgct2.h"

#include <jvmti.h>

#include <algorithm>

#include "harness/executor/jvm_fixture.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using jvm_test::JvmTest;
namespace packed = asgct2::packed;

class Asgct2Test : public JvmTest {
 protected:
  template <typename CallTrace, typename CallFrame>
  struct TracedIn {
    CallTrace trace{};
    std::vector<CallFrame> frames;

    size_t count(uint8_t type) const {
      return static_cast<size_t>(std::count_if(
          frames.begin(), frames.end(), [&](const auto& frame) { return frame.type == type; }));
    }
  };
  using Traced = TracedIn<asgct2::CallTrace, asgct2::CallFrame>;
  using Packed = TracedIn<packed::CallTrace, packed::CallFrame>;

  Traced walk(ScenarioId scenario, jint depth = 512) {
    return walk_by<Traced>("AsyncGetCallTrace2", scenario, depth);
  }
  Packed walk_packed(ScenarioId scenario, jint depth = 512) {
    return walk_by<Packed>("AsyncGetCallTrace2Packed", scenario, depth);
  }
  void expect_same_in_both(ScenarioId scenario);

  bool has_env_ = true;  // what walks are told

 private:
  // As the victim.
  template <typename Result>
  Result walk_by(const char* name, ScenarioId scenario, jint depth) {
    const auto function = reinterpret_cast<void (*)(decltype(Result::trace)*, jint, void*)>(
        session().jvm().symbol(name));
    EXPECT_NE(function, nullptr) << "test with a JDK that `framestorm jdk build` made";
    const Victim& walked = victim(scenario);
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(), walked.java_thread);
    Result result;
    result.frames.resize(512);
    result.trace.env_id = has_env_ ? static_cast<JNIEnv*>(walked.jni_env) : nullptr;
    result.trace.frames = result.frames.data();
    function(&result.trace, depth, walked.slot->context);
    result.frames.resize(static_cast<size_t>(std::max(result.trace.num_frames, 0)));
    return result;
  }
};

// Frame by frame; which native method a packed frame is of is not in it.
void Asgct2Test::expect_same_in_both(ScenarioId scenario) {
  const Traced flat = walk(scenario);
  const Packed packed = walk_packed(scenario);
  ASSERT_EQ(flat.trace.num_frames, packed.trace.num_frames);
  EXPECT_EQ(flat.trace.frame_info, packed.trace.frame_info);
  for (size_t i = 0; i < flat.frames.size(); ++i) {
    SCOPED_TRACE(i);
    const asgct2::CallFrame& one = flat.frames[i];
    const packed::CallFrame& other = packed.frames[i];
    switch (one.type) {
      case asgct2::FRAME_INTERPRETED:
      case asgct2::FRAME_JIT:
      case asgct2::FRAME_INLINE:
        EXPECT_EQ(other.type, one.type == asgct2::FRAME_INLINE ? packed::FRAME_JAVA_INLINED
                                                               : packed::FRAME_JAVA);
        EXPECT_EQ(other.java_frame.comp_level, one.comp_level);
        EXPECT_EQ(other.java_frame.bci, one.bci < 0 ? 65535 : one.bci);
        EXPECT_EQ(other.java_frame.method_id, one.method_id);
        break;
      case asgct2::FRAME_NATIVE:
        EXPECT_EQ(other.type, packed::FRAME_NATIVE);
        EXPECT_EQ(other.non_java_frame.machine_pc, one.machine_pc);
        break;
      default:
        EXPECT_EQ(other.type, one.comp_level == 255 ? packed::FRAME_STUB : packed::FRAME_CPP);
        EXPECT_EQ(other.non_java_frame.machine_pc, one.machine_pc);
    }
  }
}

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
  has_env_ = false;
  EXPECT_EQ(walk(ScenarioId::c1).trace.num_frames, -8);
}

TEST_F(Asgct2Test, WithoutClassLoadEventsThereAreNoMethodIds) {
  start({ScenarioId::parked});
  ASSERT_EQ(session().jvm().jvmti()->SetEventNotificationMode(JVMTI_DISABLE, JVMTI_EVENT_CLASS_LOAD,
                                                              nullptr),
            JVMTI_ERROR_NONE);
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(ScenarioId::parked).trace.num_frames, -1);
  EXPECT_EQ(walk_packed(ScenarioId::parked).trace.num_frames, -1);
}

TEST_F(Asgct2Test, BothLayoutsSayTheSame) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_recursion,
                                             ScenarioId::c2_inlined,
                                             ScenarioId::jni_sandwich,
                                             ScenarioId::parked,
                                             ScenarioId::arraycopy,
                                             ScenarioId::native_unattached,
                                             ScenarioId::virtual_remounted};
  start(scenarios);
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const ScenarioId walked : scenarios) {
      SCOPED_TRACE(name_of(walked));
      expect_same_in_both(walked);
    }
  }
}

TEST_F(Asgct2Test, PackedFramesOfCompiledCodeTellWhatIsInlined) {
  start({ScenarioId::c2_inlined});
  halt_in_java(ScenarioId::c2_inlined);
  ASSERT_FALSE(HasFatalFailure());
  const Packed compiled = walk_packed(ScenarioId::c2_inlined);
  EXPECT_GT(compiled.count(packed::FRAME_JAVA_INLINED), 0U);
  EXPECT_GT(compiled.count(packed::FRAME_JAVA), 0U);
}

TEST_F(Asgct2Test, PackedFramesTellStubsFromC) {
  start({ScenarioId::jni_sandwich});
  halt(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  const Packed sandwich = walk_packed(ScenarioId::jni_sandwich);
  EXPECT_GT(sandwich.count(packed::FRAME_NATIVE), 1U);
  EXPECT_GT(sandwich.count(packed::FRAME_CPP), 0U);
  EXPECT_GT(sandwich.count(packed::FRAME_STUB), 0U) << "the call stub between native code and Java";
  const CodeMap& code = session().jvm().code_map();
  for (const auto& frame : sandwich.frames) {
    const auto pc = reinterpret_cast<uintptr_t>(frame.non_java_frame.machine_pc);
    if (frame.type == packed::FRAME_CPP) EXPECT_EQ(code.find(pc), nullptr);
    if (frame.type == packed::FRAME_STUB) EXPECT_NE(code.find(pc), nullptr);
    if (frame.type == packed::FRAME_NATIVE) EXPECT_NE(code.find(pc), nullptr);
  }
}

TEST_F(Asgct2Test, PackedErrorsAndDepthsAreThoseOfTheFlatLayout) {
  start({ScenarioId::c1, ScenarioId::native_unattached, ScenarioId::vm_thread});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk_packed(ScenarioId::native_unattached).trace.num_frames, -8);
  EXPECT_EQ(walk_packed(ScenarioId::vm_thread).trace.num_frames, -8);
  EXPECT_EQ(walk_packed(ScenarioId::c1, 0).trace.num_frames, 0);
  EXPECT_EQ(walk_packed(ScenarioId::c1, 2).trace.num_frames, 2);
  has_env_ = false;
  EXPECT_EQ(walk_packed(ScenarioId::c1, 2).trace.num_frames, -8);
}

}  // namespace
}  // namespace framestorm
