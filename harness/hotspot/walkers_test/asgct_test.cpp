// AsyncGetCallTrace where a stack is not as usual: what it takes for a frame, and how many it steps over.
#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/poke.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/text.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

constexpr size_t kWord = sizeof(uintptr_t);

class AsgctTest : public JvmTest {
 protected:
  void begin(ScenarioId scenario, const std::vector<std::string>& jvm_args = {}) {
    start({scenario}, {}, jvm_args);
    ASSERT_FALSE(HasFatalFailure());
    scenario_ = scenario;
    // Code that victims run in may not have been told yet.
    ASSERT_EQ(session().jvm().jvmti()->GenerateEvents(JVMTI_EVENT_COMPILED_METHOD_LOAD),
              JVMTI_ERROR_NONE);
    session().jvm().code_map().absorb();
    if (scenario_info(scenario).top == TopCode::native) {
      halt(scenario);
    } else {
      halt_in_java(scenario);
    }
  }
  Walked trace(const std::string& lines = {}) {
    Input input;
    TextError error;
    EXPECT_TRUE(parse_text("framestorm-input 1\nwalker asgct\nscenario " +
                               std::string(name_of(scenario_)) + "\n" + lines,
                           &input, &error))
        << error.message;
    Walked walked = walk(input);
    EXPECT_EQ(walked.outcome.end, WalkEnd::returned) << explain(walked);
    EXPECT_EQ(walked.outcome.unresolved, 0U) << lines;
    return walked;
  }
  static bool is_whole(const Walked& walked) {
    return walked.outcome.succeeded() && walked.methods.back() == "framestorm/Victim.run";
  }
  const VmStructs& structs() { return session().jvm().structs(); }
  const CodeEntry& top_code() { return *session().jvm().code_map().find(victim(scenario_).pc); }
  static std::string set(const std::string& where, uintptr_t value) {
    std::array<char, 32> text = {};
    std::snprintf(text.data(), text.size(), " = raw 0x%zx\n", value);
    return where + text.data();
  }

  ScenarioId scenario_ = ScenarioId::count;
};

// How many frames at most may not be Java's before one that is: twice as many as MaxJavaStackTraceDepth says.
struct Limit {
  const char* flag;
  size_t frames;
};
class AsgctLimitTest : public AsgctTest, public testing::WithParamInterface<Limit> {
 protected:
  void begin(ScenarioId scenario) {
    AsgctTest::begin(scenario, {std::string("-XX:MaxJavaStackTraceDepth=") + GetParam().flag});
  }
};

INSTANTIATE_TEST_SUITE_P(MaxJavaStackTraceDepth, AsgctLimitTest,
                         testing::Values(Limit{"0", 1000}, Limit{"1", 2}),
                         [](const auto& limit) { return limit.param.flag; });

TEST_P(AsgctLimitTest, FramesOfCAboveJavaAreSteppedOver) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(is_whole(trace()));
  // Four words each, below what the thread has on its stack. The outermost one returns to Java.
  std::string frames = "stack sp - 2 = real-fp\nstack sp - 1 = real-pc\n";
  for (size_t count = 1; count <= 3; ++count) {
    const std::string fp = "real-sp - " + std::to_string(32 * count - 16) + "\n";
    std::string lines = frames;
    lines.append("register pc = libc-text + 64\nregister fp = ").append(fp);
    lines.append("register sp = real-sp - " + std::to_string(32 * count + 16) + "\n");
    const Walked walked = trace(lines);
    EXPECT_EQ(is_whole(walked), count <= GetParam().frames) << count << ": " << explain(walked);
    frames.append("stack sp - " + std::to_string(4 * count + 2) + " = ").append(fp);
    frames.append("stack sp - " + std::to_string(4 * count + 1) + " = libc-text + 64\n");
  }
}

// The innermost call from C++ into Java has kept where Java frames were last: there go on those of C.
TEST_P(AsgctLimitTest, FramesOfCBetweenJavaFramesAreSteppedOver) {
  begin(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(is_whole(trace()));
  const uintptr_t saved = victim(scenario_).saved_anchor(session().jvm().layout());
  ASSERT_NE(saved, 0U);
  const auto sp = read_at<uintptr_t>(reinterpret_cast<void*>(saved));
  const auto fp = read_at<uintptr_t>(reinterpret_cast<void*>(saved), 2 * kWord);
  const auto caller = "stack saved-anchor + " + std::to_string((sp - saved) / kWord - 2);
  const Walked walked = trace(set(caller, fp) + set("stack saved-anchor + 0", sp - 4 * kWord) +
                              "stack saved-anchor + 1 = libc-text + 64\n" +
                              set("stack saved-anchor + 2", sp - 2 * kWord));
  const bool steps_over = GetParam().frames > 2;  // that of the call is one, too
  EXPECT_EQ(is_whole(walked), steps_over) << explain(walked);
  EXPECT_EQ(walked.methods.size() == 2, !steps_over) << explain(walked);
}

TEST_P(AsgctLimitTest, GeneratedCodeAboveJavaIsSteppedOver) {
  begin(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  const auto returns_to =
      read_at<uintptr_t>(structs().static_address("StubRoutines", "_call_stub_return_address"));
  const std::span stack(reinterpret_cast<const uintptr_t*>(victim(scenario_).sp),
                        reinterpret_cast<const uintptr_t*>(victim(scenario_).stack_base));
  const auto call = std::ranges::find(stack, returns_to);
  ASSERT_NE(call, stack.end());
  const CodeEntry* const stub =
      session().jvm().code_map().find(entry_of(CodeKind::stub, "Shared Runtime wrong_method_blob"));
  ASSERT_NE(stub, nullptr);
  const auto words =
      read_at<int>(blob_of(stub->begin), structs().required_offset("CodeBlob", "_frame_size"));
  const Walked walked =
      trace(set("thread last-java-pc", stub->end - 1) +
            set("thread last-java-sp", reinterpret_cast<uintptr_t>(&*call + 1 - words)));
  EXPECT_EQ(is_whole(walked), GetParam().frames > 2) << explain(walked);
}

TEST_F(AsgctTest, AnInterpretedFrameHasRoomForItsMethodsStackAndNotMuchMore) {
  begin(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  constexpr size_t kMethod = 3 * kWord;  // below fp
  const auto* const method =
      read_at<const void*>(reinterpret_cast<const void*>(victim(scenario_).fp - kMethod));
  const auto* const constant =
      read_at<const void*>(method, structs().required_offset("Method", "_constMethod"));
  constexpr uint32_t kExtraEntries = 1;  // Method::extra_stack_entries()
  const uint32_t max_stack =
      read_at<uint16_t>(constant, structs().required_offset("ConstMethod", "_max_stack")) +
      kExtraEntries;
  const size_t most = (1024 + kWord * max_stack) * kWord;
  for (const auto& [bytes, right] : {std::pair(most, true), {most + kWord, false}}) {
    EXPECT_EQ(is_whole(trace("register sp = real-fp - " + std::to_string(bytes) + "\n")), right)
        << bytes;
  }
}

TEST_F(AsgctTest, CompiledCodeOfWhatIsNoMethodHasNoTrace) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const std::array<uintptr_t, 64> nothing = {};
  EXPECT_TRUE(is_whole(trace()));
  const Poke<const void*> method(
      blob_of(victim(scenario_).pc) + structs().required_offset("nmethod", "_method"),
      nothing.data());
  EXPECT_EQ(trace().outcome.result, -2);
}

// Code says where frames return to that are to be deoptimised. At a call of a method handle it is elsewhere.
TEST_F(AsgctTest, AFrameThatReturnsToBeDeoptimisedEndsTheTrace) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(is_whole(trace()));
  const auto caller = read_at<uintptr_t>(reinterpret_cast<const void*>(victim(scenario_).sp),
                                         top_code().frame_bytes - kWord);
  std::byte* const blob = blob_of(caller);
  for (const char* field : {"_deopt_handler_offset", "_deopt_mh_handler_offset"}) {
    const Poke handler(blob + structs().required_offset("nmethod", field),
                       static_cast<int>(caller - reinterpret_cast<uintptr_t>(blob)));
    const Walked walked = trace();
    EXPECT_EQ(walked.outcome.result, -5) << field << explain(walked);
  }
}

}  // namespace
}  // namespace framestorm
