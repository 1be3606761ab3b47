// The walkers that are built into the instrumented JDK, as fuzz targets walk with them: unmutated,
// every oracle on every walk, on a JDK that has them.
#include <random>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/canonical.h"
#include "harness/input/text.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::not_known;
using jvm_test::Walked;

constexpr std::array kModes = {Mode::same_thread, Mode::separate_thread};

class BuiltInTest : public JvmTest {
 protected:
  void start_with_all(const std::vector<ScenarioId>& scenarios) {
    start(scenarios);
    if (HasFatalFailure()) return;
    for (const WalkerId walker : kAddedWalkers) {
      ASSERT_FALSE(session().missing_walkers().contains(walker))
          << session().missing_walkers().at(walker);
    }
  }
  // The first `count` results of `make` that are right, or the failure of the first that is not.
  template <typename Make>
  void expect_right(int count, Make make) {
    std::string wrong;
    loop([&] {
      for (int i = 0; i < count && wrong.empty(); ++i) {
        const Input input = make();
        const Outcome outcome = executor().execute(input);
        for (const Finding& finding : outcome.findings) {
          wrong += finding.clause + ": " + finding.detail + "\n" + to_text(input);
        }
      }
    });
    EXPECT_EQ(wrong, "");
  }
  // Of random calls, each of its victims unmutated.
  template <typename Call, typename Pick>
  void expect_sequences_right(const std::vector<ScenarioId>& scenarios,
                              std::vector<Call> Input::* calls, Pick walker) {
    using Kind = decltype(Call::kind);
    executor().set_rigour(Rigour::per_walk);
    std::mt19937 rng(3);
    for (const ScenarioId scenario : scenarios) {
      halt(scenario);
      ASSERT_FALSE(HasFatalFailure());
      expect_right(4000, [&] {
        Input input;
        input.scenario = scenario;
        input.mode = kModes[rng() % kModes.size()];
        input.walker = walker(rng);
        input.call.options = rng() & kIncludeCFrames;
        (input.*calls).resize(1 + rng() % kMaxIteratorCalls);
        for (Call& call : input.*calls) {
          call.kind = static_cast<Kind>(rng() % static_cast<unsigned>(Kind::count));
          const int number = static_cast<int>(rng() % 4);
          // Few frames, and queues of few elements.
          const int first = first_argument(call.kind);
          call.argument = static_cast<uint8_t>(number - std::min(first, 0));
        }
        canonicalise(&input);
        return input;
      });
    }
  }
};

TEST_F(BuiltInTest, UnmutatedWalksOfEveryScenarioAreRight) {
  start_with_all({});
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : session().available()) {
    for (int halts = 0; halts < 3; ++halts) {
      halt(scenario);
      ASSERT_FALSE(HasFatalFailure());
      for (const WalkerId walker : kAddedWalkers) {
        for (const Mode mode : kModes) {
          for (const uint32_t options : {0U, 1U, 3U, 7U, kJavaSampler | kStaleSample}) {
            Input plain;
            plain.scenario = scenario;
            plain.walker = walker;
            plain.mode = mode;
            plain.call.options = options & traits_of(walker).options;
            const Walked walked = walk(plain);
            EXPECT_TRUE(not_known(plain, walked.findings).empty())
                << to_text(plain) << explain(walked);
          }
        }
      }
    }
  }
}

// Frames are marked while the victim runs from one halt to the next.
TEST_F(BuiltInTest, TracesThatArePutTogetherAreWhole) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_recursion, ScenarioId::c1,
                                             ScenarioId::c2_inlined, ScenarioId::lambda,
                                             ScenarioId::virtual_fresh};
  start_with_all(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : scenarios) {
    int put_together = 0;
    for (int halts = 0; halts < 12; ++halts) {
      halt(scenario);
      ASSERT_FALSE(HasFatalFailure());
      for (const Mode mode : kModes) {
        for (const uint32_t options : {0U, kIncludeCFrames, kIncludeCFrames | kEndAtContinuation}) {
          Input plain;
          plain.scenario = scenario;
          plain.walker = WalkerId::asgst_mark;
          plain.mode = mode;
          plain.call.options = options;
          const Walked walked = walk(plain);
          EXPECT_TRUE(walked.findings.empty()) << to_text(plain) << explain(walked);
          put_together += walked.outcome.put_together ? 1 : 0;
        }
      }
    }
    EXPECT_GT(put_together, 0) << name_of(scenario);
  }
}

TEST_F(BuiltInTest, SequencesOfIteratorCallsDoWhatTheModelSays) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_recursion,
                                             ScenarioId::c2_inlined, ScenarioId::native_method,
                                             ScenarioId::jni_sandwich, ScenarioId::deep_stack};
  start_with_all(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  expect_sequences_right(scenarios, &Input::iterator_calls, [](std::mt19937& rng) {
    return rng() % 4 == 0 ? WalkerId::asgst_frame : WalkerId::asgst_iterator;
  });
}

TEST_F(BuiltInTest, SequencesOfQueueCallsDoWhatTheModelSays) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_recursion,
                                             ScenarioId::c1,
                                             ScenarioId::c2_inlined,
                                             ScenarioId::native_method,
                                             ScenarioId::parked,
                                             ScenarioId::jni_sandwich,
                                             ScenarioId::virtual_remounted,
                                             ScenarioId::vm_thread,
                                             ScenarioId::native_unattached,
                                             ScenarioId::math_stubs};
  start_with_all(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  expect_sequences_right(scenarios, &Input::queue_calls,
                         [](std::mt19937&) { return WalkerId::asgst_queue; });
}

}  // namespace
}  // namespace framestorm
