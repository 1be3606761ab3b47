// Unmutated walks are right however the JVM runs its code: interpreted only, with one compiler,
// with both, with everything compiled; and however it lays out what walkers read.
#include <algorithm>
#include <set>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/walker_table.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::not_known;
using jvm_test::Walked;

// One of each kind of frame.
const std::vector<ScenarioId> kSubset = {ScenarioId::interpreted_recursion,
                                         ScenarioId::c1,
                                         ScenarioId::c2_inlined,
                                         ScenarioId::osr,
                                         ScenarioId::native_method,
                                         ScenarioId::jni_sandwich,
                                         ScenarioId::monitor_blocked,
                                         ScenarioId::vm_call,
                                         ScenarioId::arraycopy,
                                         ScenarioId::vtable_dispatch,
                                         ScenarioId::method_handle,
                                         ScenarioId::exception_unwind,
                                         ScenarioId::deoptimized_caller,
                                         ScenarioId::large_frame,
                                         ScenarioId::virtual_remounted};

constexpr int kHalts = 4;

struct JitMode {
  std::string name;
  std::vector<std::string> jvm_args;
  std::set<ScenarioId> missing;
};

std::ostream& operator<<(std::ostream& out, const JitMode& mode) { return out << mode.name; }

const JitMode kModes[] = {
    {"tiered", {}, {}},
    {"interpreter",
     {"-Xint"},
     {ScenarioId::c1, ScenarioId::c2_inlined, ScenarioId::osr, ScenarioId::native_method,
      ScenarioId::arraycopy, ScenarioId::vtable_dispatch, ScenarioId::deoptimized_caller}},
    {"c1", {"-XX:TieredStopAtLevel=1"}, {ScenarioId::c2_inlined}},
    {"c2", {"-XX:-TieredCompilation"}, {ScenarioId::c1}},
    {"compiled", {"-Xcomp"}, {}},
    {"compact_headers", {"-XX:+UseCompactObjectHeaders"}, {}},
    {"wide_class_pointers", {"-XX:-UseCompressedClassPointers"}, {}},
    {"no_shared_classes", {"-Xshare:off"}, {}},
    {"frame_pointers", {"-XX:+PreserveFramePointer"}, {}},
    {"z_small_stacks", {"-XX:+UseZGC", "-Xss512k"}, {}}};

class JitModeTest : public JvmTest, public testing::WithParamInterface<JitMode> {
 protected:
  // How many walks gave frames.
  int walk_with_all(ScenarioId scenario) {
    int succeeded = 0;
    for (const WalkerId walker : kAddedWalkers) {
      EXPECT_NE(executor().walker(walker), nullptr)
          << name_of(walker) << ": test with a JDK that `framestorm jdk build` made";
      for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
        if (!traits_of(walker).walks_in(mode)) continue;
        Input input;
        input.scenario = scenario;
        input.mode = mode;
        input.walker = walker;
        const Walked walked = walk(input);
        EXPECT_TRUE(not_known(input, walked.findings).empty())
            << name_of(walker) << " " << name_of(mode) << " at "
            << executor().addresses().describe(victim(scenario).pc, victim(scenario)) << ": "
            << explain(walked);
        succeeded += walked.outcome.succeeded() ? 1 : 0;
        if (scenario == ScenarioId::c2_inlined && walker == WalkerId::asgct2 &&
            in_top_code(scenario)) {
          EXPECT_EQ(std::ranges::count(walked.frames, FrameType::inlined, &Frame::type), 3)
              << explain(walked);
        }
      }
    }
    return succeeded;
  }
};

INSTANTIATE_TEST_SUITE_P(All, JitModeTest, testing::ValuesIn(kModes),
                         [](const auto& mode) { return mode.param.name; });

TEST_P(JitModeTest, WalksOfEveryScenarioAreRight) {
  start(kSubset, {}, GetParam().jvm_args);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : kSubset) {
    SCOPED_TRACE(name_of(scenario));
    const auto missing = session().unavailable().find(scenario);
    if (GetParam().missing.contains(scenario)) {
      ASSERT_NE(missing, session().unavailable().end());
      EXPECT_NE(missing->second.find("this JVM has only"), std::string::npos) << missing->second;
      continue;
    }
    ASSERT_EQ(missing, session().unavailable().end()) << missing->second;
    int succeeded = 0;
    for (int i = 0; i < kHalts; ++i) {
      halt(scenario);
      ASSERT_FALSE(HasFatalFailure());
      succeeded += walk_with_all(scenario);
    }
    EXPECT_GT(succeeded, 0);
  }
}

// Where the outer frames of a virtual thread are frozen, the rest is what the reference has.
TEST_P(JitModeTest, FramesOnTheStackAreThoseOfGetStackTrace) {
  start({ScenarioId::virtual_remounted}, {}, GetParam().jvm_args);
  ASSERT_FALSE(HasFatalFailure());
  for (const WalkerId walker : kAddedWalkers) {
    if (walker == WalkerId::asgst_frame) continue;        // three registers name no innermost bci
    if (traits_of(walker).chooses_its_threads) continue;  // none of this one's frames
    halt(ScenarioId::virtual_remounted);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(session().compare_with_gst(ScenarioId::virtual_remounted, walker), "")
        << name_of(walker);
  }
}

}  // namespace
}  // namespace framestorm
