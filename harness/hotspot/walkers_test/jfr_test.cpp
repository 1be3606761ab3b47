// JFR's two stages on live victims: what requests are of which scenario, what they leave behind,
// and what was predicted of them by reading JDK 25's sources. All oracles look at each walk.
#include <jfrwalk.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/poke.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/executor/poll_answer.h"
#include "harness/input/text.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

constexpr const char* kOldBytecode = "contract:old-bytecode";

Input input_of(const std::string& lines) {
  Input input;
  TextError error;
  EXPECT_TRUE(parse_text("framestorm-input 1\n" + lines, &input, &error)) << error.message;
  return input;
}

class JfrTest : public JvmTest {
 protected:
  static Input plain(ScenarioId scenario, WalkerId walker, uint32_t options = 0) {
    Input input;
    input.scenario = scenario;
    input.walker = walker;
    input.call.options = options;
    return input;
  }
  std::string error_of(const Walked& walked) {
    return std::string(executor().walker(WalkerId::jfr_request)->error_name(walked.outcome.result));
  }
};

TEST_F(JfrTest, RequestsInCompiledCodeAreOfTheContext) {
  start({ScenarioId::c2_inlined});
  halt_in_java(ScenarioId::c2_inlined);
  ASSERT_FALSE(HasFatalFailure());
  for (const uint32_t sampler : {0U, kJavaSampler}) {
    const Walked walked = walk(plain(ScenarioId::c2_inlined, WalkerId::jfr_request, sampler));
    EXPECT_TRUE(walked.findings.empty()) << explain(walked);
    ASSERT_EQ(walked.frames.size(), 1U) << error_of(walked);
    EXPECT_EQ(walked.frames[0].pc, victim(ScenarioId::c2_inlined).pc);
    EXPECT_EQ(walked.frames[0].bcp, 0U);
  }
}

TEST_F(JfrTest, RequestsInTheInterpreterHaveABytecode) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  for (const uint32_t sampler : {0U, kJavaSampler}) {
    const Walked walked =
        walk(plain(ScenarioId::interpreted_recursion, WalkerId::jfr_request, sampler));
    const auto clauses = clauses_of(walked.findings);
    const bool is_old = sampler != kJavaSampler && std::ranges::count(clauses, kOldBytecode) > 0;
    EXPECT_EQ(clauses.size(), is_old ? 1U : 0U) << explain(walked);
    ASSERT_EQ(walked.frames.size(), 1U) << error_of(walked);
    EXPECT_NE(walked.frames[0].bcp, 0U);
    EXPECT_GE(walked.frames[0].bci, 0);
  }
}

// build() of jfrSampleRequest.cpp reads it in the frame, where the last call or poll has left it;
// build_from_context(), of the other sampler only, in the register.
TEST_F(JfrTest, TheCpuTimeSamplerTakesAnOldBytecodePointerInTheInterpreter) {
  start({ScenarioId::interpreted_recursion});
  const auto bci_by = [&](WalkerId walker, uint32_t options = 0) {
    const Walked walked = walk(plain(ScenarioId::interpreted_recursion, walker, options));
    return walked.frames.empty() ? kNoBci : walked.frames[0].bci;
  };
  const auto clauses_by = [&](uint32_t sampler) {
    return clauses_of(
        walk(plain(ScenarioId::interpreted_recursion, WalkerId::jfr_request, sampler)).findings);
  };
  int old = 0;
  for (int i = 0; i < 100 && old == 0; ++i) {
    halt_in_java(ScenarioId::interpreted_recursion);
    ASSERT_FALSE(HasFatalFailure());
    const int32_t bci = bci_by(WalkerId::asgst_iterator);
    EXPECT_EQ(bci_by(WalkerId::jfr_request, kJavaSampler), bci);
    EXPECT_EQ(clauses_by(kJavaSampler), std::vector<std::string>{});
    const bool is_old = bci_by(WalkerId::jfr_request) != bci;
    EXPECT_EQ(clauses_by(0),
              is_old ? std::vector<std::string>{kOldBytecode} : std::vector<std::string>{});
    old += is_old ? 1 : 0;
  }
  EXPECT_GT(old, 0);
}

TEST_F(JfrTest, OnlyOneSamplerAsksInNativeCode) {
  start({ScenarioId::native_method});
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(plain(ScenarioId::native_method, WalkerId::jfr_request)).frames.size(), 1U);
  EXPECT_EQ(error_of(walk(plain(ScenarioId::native_method, WalkerId::jfr_request, kJavaSampler))),
            "wrong_thread_state");
}

TEST_F(JfrTest, AStubHasNoFrame) {
  start({ScenarioId::digest});
  halt_in_java(ScenarioId::digest);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(error_of(walk(plain(ScenarioId::digest, WalkerId::jfr_request))), "biased");
}

// Between a call of compiled code and the interpreted method that it calls. JFR finds no debug
// information at that pc and takes the frame's own.
TEST_F(JfrTest, RequestsInAStubOfCompiledCodeAreOfItsFrame) {
  start({ScenarioId::adapters});
  bool was_there = false;
  for (int i = 0; i < 4000 && !was_there; ++i) {
    halt_in_java(ScenarioId::adapters);
    ASSERT_FALSE(HasFatalFailure());
    const CodeEntry* const code = session().jvm().code_map().find(victim(ScenarioId::adapters).pc);
    was_there =
        code != nullptr && code->stubs != 0 && victim(ScenarioId::adapters).pc >= code->stubs;
    if (!was_there) continue;
    const Walked walked = walk(plain(ScenarioId::adapters, WalkerId::jfr_request));
    EXPECT_TRUE(walked.findings.empty()) << explain(walked);
    ASSERT_EQ(walked.frames.size(), 1U) << error_of(walked);
    EXPECT_EQ(walked.frames[0].pc, victim(ScenarioId::adapters).pc);
  }
  EXPECT_TRUE(was_there) << "no halt in a stub";
}

TEST_F(JfrTest, TracesOutsideJavaAreWhole) {
  start({ScenarioId::native_method, ScenarioId::jni_sandwich, ScenarioId::parked, ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario :
       {ScenarioId::native_method, ScenarioId::jni_sandwich, ScenarioId::parked}) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const uint32_t stale : {0U, kStaleSample}) {
      const Walked walked = walk(plain(scenario, WalkerId::jfr_trace, stale));
      EXPECT_TRUE(walked.outcome.succeeded()) << name_of(scenario) << error_of(walked);
      EXPECT_TRUE(walked.findings.empty()) << explain(walked);
    }
  }
  EXPECT_EQ(error_of(walk(plain(ScenarioId::parked, WalkerId::jfr_request))), "wrong_thread_state");
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(error_of(walk(plain(ScenarioId::c1, WalkerId::jfr_trace))), "wrong_thread_state");
}

// A sample that was taken deeper or higher on the stack than the thread is when it answers: JFR
// looks for its frame and, if it is not there, takes the innermost one that is.
TEST_F(JfrTest, StaleSamplesGiveFramesOfTheThread) {
  start({ScenarioId::native_method});
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  for (const char* sp : {"real-sp - 4096", "real-sp", "real-sp + 64", "real-sp + 256"}) {
    const Walked walked = walk(input_of(
        std::string("scenario native-method\nwalker jfr-trace\noptions 0x20\nregister sp = ") + sp +
        "\nregister pc = nmethod \"framestorm/NativeMethod.call\" verified-entry + 8\n"));
    EXPECT_TRUE(walked.findings.empty()) << sp << ": " << explain(walked);
    ASSERT_TRUE(walked.outcome.succeeded()) << sp << ": " << error_of(walked);
    EXPECT_EQ(walked.methods.back(), "framestorm/Victim.run") << sp;
  }
}

// Inlined is what is in the same frame as its caller: here at the end there is none.
TEST_F(JfrTest, AFrameAtWhoseStackPointerTheTraceEndsIsNotInlined) {
  start({ScenarioId::jni_sandwich}, {},
        {"-Xcomp", "-XX:CompileCommand=compileonly,framestorm.JniSandwich*::*"});
  ASSERT_FALSE(HasFatalFailure());
  // The victim has run into what was then compiled: that may not have been told yet.
  ASSERT_EQ(session().jvm().jvmti()->GenerateEvents(JVMTI_EVENT_COMPILED_METHOD_LOAD),
            JVMTI_ERROR_NONE);
  session().jvm().code_map().absorb();
  halt(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& thread = victim(ScenarioId::jni_sandwich);
  const auto returns_to = read_at<uintptr_t>(
      session().jvm().structs().static_address("StubRoutines", "_call_stub_return_address"));
  const std::span stack(reinterpret_cast<const uintptr_t*>(thread.sp),
                        reinterpret_cast<const uintptr_t*>(thread.stack_base));
  const auto innermost = std::ranges::find(stack, returns_to);
  const auto outermost = std::ranges::find(std::views::reverse(stack), returns_to);
  const CodeEntry* const inner = session().jvm().code_map().find(
      entry_of(CodeKind::nmethod, "framestorm/JniSandwich$Inner.run"));
  ASSERT_NE(inner, nullptr);
  std::array<char, 256> lines = {};
  std::snprintf(lines.data(), lines.size(),
                "walker jfr-trace\nscenario jni-sandwich\nstack saved-anchor + 0 = raw 0x%zx\n"
                "stack saved-anchor + 1 = raw 0x%zx\nstack saved-anchor + 2 = raw 0x%zx\n",
                reinterpret_cast<uintptr_t>(&*innermost + 1) - inner->frame_bytes, returns_to,
                *(outermost + 1));
  const Walked walked = walk(input_of(lines.data()));
  ASSERT_EQ(walked.methods.size(), 2U) << explain(walked);
  EXPECT_EQ(walked.methods[1], "framestorm/JniSandwich$Inner.run");
  EXPECT_EQ(walked.frames[1].type, FrameType::compiled);
}

// Samples of threads in Java, and their answers at a poll of the thread after it went on.
class JfrAnswerTest : public JfrTest {
 protected:
  static constexpr jint kDepth = 2048;
  static constexpr int kHalts = 12;

  template <typename Function>
  Function* exported(const char* name) {
    void* const found = session().jvm().symbol(name);
    EXPECT_NE(found, nullptr) << "test with a JDK that `framestorm jdk build` made";
    return reinterpret_cast<Function*>(found);
  }

  // World halted.
  JfrWalk_Request sample(ScenarioId scenario, int sampler) {
    const Victim& walked = victim(scenario);
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(), walked.java_thread);
    JfrWalk_Request request = {};
    exported<decltype(JfrWalk_BuildRequest)>("JfrWalk_BuildRequest")(walked.slot->context, sampler,
                                                                     &request);
    return request;
  }
  // World released. The names of the frames, or the result that is none.
  std::vector<std::string> answer(ScenarioId scenario, const JfrWalk_Request& request,
                                  jint* result) {
    static std::array<JfrWalk_Frame, kDepth> frames;
    *result = exported<decltype(JfrWalk_AnswerAtPoll)>("JfrWalk_AnswerAtPoll")(
        session().jvm().env(), victim(scenario).java_thread, &request, frames.data(), kDepth);
    session().jvm().methods().absorb();
    std::vector<std::string> names;
    for (jint i = 0; i < *result; ++i) {
      const MethodInfo* const method =
          session().jvm().methods().find(frames.at(static_cast<size_t>(i)).method_id);
      names.push_back(method == nullptr ? "?" : method->name);
    }
    return names;
  }
};

TEST_F(JfrAnswerTest, TracesOfThreadsInJavaAreWhole) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_recursion,
                                             ScenarioId::c1,
                                             ScenarioId::c2_inlined,
                                             ScenarioId::lambda,
                                             ScenarioId::class_init,
                                             ScenarioId::large_frame,
                                             ScenarioId::vtable_dispatch,
                                             ScenarioId::adapters,
                                             ScenarioId::exception_unwind};
  start(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : scenarios) {
    for (int i = 0; i < kHalts; ++i) {
      halt(scenario);
      ASSERT_FALSE(HasFatalFailure());
      const JfrWalk_Request request = sample(scenario, i % 3);
      session().release_world();
      jint result = 0;
      const auto names = answer(scenario, request, &result);
      std::string why;
      EXPECT_TRUE(matches(names, scenario_info(scenario), traits_of(WalkerId::jfr_trace), &why))
          << name_of(scenario) << ": result " << result << ", " << why;
    }
  }
}

// As fuzzing and replay do it.
TEST_F(JfrAnswerTest, AWalkInJavaIsAnsweredOnceTheThreadRunsOn) {
  start({ScenarioId::c1, ScenarioId::c2_inlined, ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  for (const char* lines :
       {"scenario c1\n", "scenario c2-inlined\n", "scenario interpreted-recursion\n",
        "scenario c1\noptions 0x20\nregister sp = real-sp - 4096\n",
        "scenario c1\noptions 0x20\nregister sp = real-sp + 64\n"}) {
    const Input input = input_of("walker jfr-trace\n" + std::string(lines));
    halt_in_java(input.scenario);
    ASSERT_FALSE(HasFatalFailure());
    const Walked walked = walk(input);
    ASSERT_TRUE(walked.outcome.has_request) << lines << error_of(walked);
    const auto inlined = std::ranges::count_if(walked.outcome.requested, &JavaFrame::is_inlined);
    EXPECT_EQ(inlined, input.scenario == ScenarioId::c2_inlined ? 3 : 0) << lines;
    const Outcome answer = answer_at_poll(session(), input, walked.outcome);
    EXPECT_GT(answer.result, 0) << lines;
    EXPECT_TRUE(answer.findings.empty()) << lines << answer.findings.front().detail;
  }
  const Input above = input_of(
      "walker jfr-trace\nscenario c1\noptions 0x20\n"
      "register pc = codelet \"return\" entry + 8\nregister fp = stack-base - 8\n");
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Outcome faulted = answer_at_poll(session(), above, walk(above).outcome);
  ASSERT_EQ(faulted.findings.size(), 1U);
  EXPECT_EQ(faulted.findings[0].clause, "fault-at-poll");
}

// No method returns before it has polled. One that ran on first would have returned: these are short. But loop()
// pushes two words where it checks the type of what it calls, and JFR takes sp for its frame's: then the frame of what
// is called next is above it, and the sample is of that.
TEST_F(JfrAnswerTest, TheThreadAnswersAtTheFirstPollThatItComesTo) {
  start({ScenarioId::math_stubs});
  ASSERT_FALSE(HasFatalFailure());
  const Input input = plain(ScenarioId::math_stubs, WalkerId::jfr_trace);
  int stood = 0;
  uintptr_t sp_of_loop = 0;
  std::vector<std::pair<uintptr_t, std::string>> elsewhere;  // with sp in loop(), else 0
  for (uint64_t i = 0; i < 600; ++i) {
    session().halt_world(input.scenario, {}, 7919 * i);
    const Victim& thread = victim(input.scenario);
    const CodeEntry* const code = session().jvm().code_map().find(thread.pc);
    const bool in_loop = code != nullptr && code->name == "framestorm/MathStubs.loop";
    const uintptr_t sp = in_loop ? thread.sp : 0;
    sp_of_loop = std::max(sp_of_loop, sp);
    const Outcome walked = walk(input).outcome;
    if (!walked.requested_stands) continue;
    const Outcome answer = answer_at_poll(session(), input, walked);
    stood += answer.at_first_poll ? 1 : 0;
    for (const Finding& finding : answer.findings) {
      if (finding.clause == "sample-elsewhere") elsewhere.emplace_back(sp, finding.detail);
    }
  }
  for (const auto& [sp, detail] : elsewhere) EXPECT_TRUE(sp != 0 && sp < sp_of_loop) << detail;
  EXPECT_GT(stood, 10);
}

// Sampled in a method, and answered where the next poll is: often in one that it has called.
TEST_F(JfrAnswerTest, AnswersAreOfTheFramesThatWereSampled) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_calls,
                                             ScenarioId::compiled_calls,
                                             ScenarioId::vtable_dispatch, ScenarioId::adapters};
  start(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : scenarios) {
    const Input input = plain(scenario, WalkerId::jfr_trace);
    int stood = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      session().halt_world(scenario, {}, 7919 * i);
      const Walked walked = walk(input);
      EXPECT_TRUE(walked.findings.empty()) << name_of(scenario) << ": " << explain(walked);
      if (victim(scenario).thread_state(session().jvm().layout()) == kThreadInNative) {
        ASSERT_TRUE(walked.outcome.succeeded()) << error_of(walked);
        EXPECT_EQ(walked.methods.front(), "framestorm/Harness.countInNative");
      }
      stood += walked.outcome.requested_stands ? 1 : 0;
      if (!walked.outcome.has_request) continue;
      for (const Finding& finding : answer_at_poll(session(), input, walked.outcome).findings) {
        ADD_FAILURE() << name_of(scenario) << ": " << finding.clause << ", " << finding.detail;
      }
    }
    EXPECT_GT(stood, 10) << name_of(scenario);
  }
}

// The frame that was sampled is gone, or was never there.
TEST_F(JfrAnswerTest, SamplesOfFramesThatAreGoneGiveTheThreadsFrames) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  for (const int bytes : {-4096, -64, -8, 8, 64}) {
    halt_in_java(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    JfrWalk_Request request = sample(ScenarioId::c1, JFR_WALK_CPU_TIME_SAMPLER);
    request.sp = static_cast<char*>(request.sp) + bytes;
    session().release_world();
    jint result = 0;
    const auto names = answer(ScenarioId::c1, request, &result);
    ASSERT_GT(result, 0) << bytes;
    EXPECT_EQ(names.back(), "framestorm/Victim.run") << bytes;
  }
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  JfrWalk_Request above = sample(ScenarioId::c1, JFR_WALK_CPU_TIME_SAMPLER);
  above.sp = reinterpret_cast<void*>(victim(ScenarioId::c1).stack_base - 8);
  session().release_world();
  jint result = 0;
  answer(ScenarioId::c1, above, &result);
  EXPECT_EQ(result, JFR_WALK_CONTAINED_FAULT) << "all frames are below: none is the top one";
}

// The interpreter says so in a byte of its thread, which this finds in its code: movb [r15 + offset], 1.
TEST_F(JfrAnswerTest, AnInterpretedFrameIsNotSampledWhileItIsLeft) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const CodeEntry* const code =
      session().jvm().code_map().find(entry_of(CodeKind::codelet, "return"));
  ASSERT_NE(code, nullptr);
  const std::string_view bytes(reinterpret_cast<const char*>(code->begin), code->end - code->begin);
  size_t store = bytes.find("\x41\xc6\x87");
  while (store != std::string_view::npos && bytes[store + 7] != 1) {
    store = bytes.find("\x41\xc6\x87", store + 1);
  }
  ASSERT_NE(store, std::string_view::npos);
  auto* const leaves = static_cast<char*>(victim(ScenarioId::interpreted_recursion).java_thread) +
                       read_at<int32_t>(bytes.data() + store + 3);
  EXPECT_NE(sample(ScenarioId::interpreted_recursion, JFR_WALK_JAVA_SAMPLER).pc, nullptr);
  EXPECT_EQ(*leaves, 0);
  const Poke left(leaves, char{1});
  EXPECT_EQ(sample(ScenarioId::interpreted_recursion, JFR_WALK_JAVA_SAMPLER).pc, nullptr);
}

// Both are told by where they end.
TEST_F(JfrAnswerTest, ACompiledFrameWhereAnInterpretedOneWasSampledIsTheInnermost) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& thread = victim(ScenarioId::c1);
  const CodeEntry* const spin = session().jvm().code_map().find(thread.pc);
  const JfrWalk_Request request = {.sp = reinterpret_cast<void*>(thread.sp + spin->frame_bytes),
                                   .pc = reinterpret_cast<void*>(thread.pc),
                                   .bcp = reinterpret_cast<void*>(1)};
  session().release_world();
  jint result = 0;
  const auto names = answer(ScenarioId::c1, request, &result);
  ASSERT_GT(result, 0);
  EXPECT_EQ(names.front(), "framestorm/C1.spin");
  EXPECT_EQ(names.back(), "framestorm/Victim.run");
}

TEST_F(JfrAnswerTest, AFaultIsContainedAndTheThreadGoesOn) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const JfrWalk_Request real = sample(ScenarioId::c1, JFR_WALK_CPU_TIME_SAMPLER);
  // As the predicted state AFrameAboveAllOthers.
  JfrWalk_Request above = real;
  above.sp = reinterpret_cast<void*>(victim(ScenarioId::c1).stack_base - 8);
  above.pc = reinterpret_cast<void*>(16);
  above.bcp = reinterpret_cast<void*>(1);
  session().release_world();
  jint result = 0;
  answer(ScenarioId::c1, above, &result);
  EXPECT_EQ(result, JFR_WALK_CONTAINED_FAULT);
  EXPECT_EQ(answer(ScenarioId::c1, real, &result).back(), "framestorm/Victim.run");
}

// The caller of a frame that is not set up yet is found where that returns to, if that is Java.
TEST_F(JfrTest, AFrameThatIsNotSetUpHasNoCallerWhereAContinuationIsEntered) {
  start({ScenarioId::interpreted_recursion, ScenarioId::virtual_fresh});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const auto returns_to = read_at<uintptr_t>(
      session().jvm().structs().static_address("ContinuationEntry", "_return_pc"));
  std::array<char, 64> line = {};
  std::snprintf(line.data(), line.size(), "stack fp + 1 = raw 0x%zx\n", returns_to);
  const std::string lines =
      "walker jfr-request\nscenario interpreted-recursion\nregister sp = real-fp\n"
      "register pc = codelet \"return\" entry + 8\n";
  EXPECT_EQ(walk(input_of(lines)).outcome.result, 1);
  EXPECT_EQ(walk(input_of(lines + line.data())).outcome.result, JFR_WALK_BIASED);
}

// Each makes the state of which reading said that JFR trusts it.
struct Trusted {
  const char* name;
  WalkEnd end;
  const char* lines;
};

class EachTrustedState : public JfrTest, public testing::WithParamInterface<Trusted> {};

INSTANTIATE_TEST_SUITE_P(
    Predicted, EachTrustedState,
    testing::Values(
        // sender_for_interpreter_frame() takes any link within the stack for the caller's frame
        // pointer: build() and build_for_interpreter() call each other as long as it leads on.
        Trusted{"ALinkToItself", WalkEnd::hang,
                "scenario interpreted-recursion\nwalker jfr-request\n"
                "stack fp + 0 = real-fp\nstack fp + 1 = codelet \"return\" entry + 8\n"
                "register pc = codelet \"return\" entry + 8\nregister sp = real-fp\n"},
        // fp_in_stack() accepts the last word of the stack, and the return address is behind it.
        Trusted{"AReturnAddressBehindTheStack", WalkEnd::fault,
                "scenario interpreted-recursion\nwalker jfr-request\n"
                "register pc = codelet \"return\" entry + 8\n"
                "register sp = stack-base - 8\nregister fp = stack-base - 8\n"},
        // build_from_ljf() reads sp[-1] of an anchor without pc; that sp is on the stack is only
        // asserted.
        Trusted{"AnAnchorWithoutPc", WalkEnd::fault,
                "scenario native-method\nwalker jfr-request\n"
                "thread last-java-pc = raw 0x0\nthread last-java-sp = guard-page + 8\n"},
        // compute_sender_frame() only asserts that the sampled frame is met.
        Trusted{"AFrameAboveAllOthers", WalkEnd::fault,
                "scenario native-method\nwalker jfr-trace\noptions 0x20\n"
                "register pc = codelet \"return\" entry + 8\nregister fp = stack-base - 8\n"}),
    [](const auto& trusted) { return trusted.param.name; });

TEST_P(EachTrustedState, IsTrusted) {
  const Input input = input_of(GetParam().lines);
  start({input.scenario});
  // A thread of which a safepoint has come up is refused.
  if (scenario_info(input.scenario).top == TopCode::native) {
    halt(input.scenario);
  } else {
    halt_in_java(input.scenario);
  }
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk(input);
  EXPECT_EQ(walked.outcome.unresolved, 0U);
  EXPECT_EQ(walked.outcome.end, GetParam().end) << error_of(walked) << explain(walked);
}

}  // namespace
}  // namespace framestorm
