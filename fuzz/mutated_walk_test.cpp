// What a target's mutator makes leaves nothing behind in a live JVM's victim.
#include "fuzz/mutator.h"
#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"

namespace framestorm {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;

class MapNames final : public CodeNames {
 public:
  explicit MapNames(const CodeMap& map) {
    for (const CodeEntry& entry : map.entries()) {
      codes_.push_back({{entry.kind, entry.tier, CodeAnchor::entry, entry.name},
                        static_cast<uint32_t>(entry.end - entry.begin)});
    }
  }
  const NamedCode* pick(Rng& rng) const override { return &codes_[rng.below(codes_.size())]; }

 private:
  std::vector<NamedCode> codes_;
};

class MutatedWalk : public JvmTest, public testing::WithParamInterface<std::string> {
 protected:
  // Executes random inputs of the target on the halted scenario; returns the first trace of one
  // that is left in the victim.
  std::string execute_random(WalkerId walker, ScenarioId scenario, const Mutator& base, Rng& rng,
                             int times, int* mutated) {
    std::string wrong;
    Victim& halted = victim(scenario);
    bool not_reusable = false;
    loop([&] {
      Input input;
      for (int i = 0; i < times && wrong.empty() && !not_reusable; ++i) {
        base.mutate(&input, rng);
        input.walker = walker;
        const Outcome outcome = executor().execute(input);
        *mutated += outcome.unmutated ? 0 : 1;
        not_reusable = outcome.not_reusable;
        for (const Finding& finding : outcome.findings) {
          // AsyncGetCallTrace completes anchors on the stack that it walks. That is reported and put
          // right (corpus/crashes, entry-frame-walk-writes-call-wrapper).
          const bool is_asgct = walker == WalkerId::asgct;
          if (finding.clause == "undo-failed" ||
              (finding.clause == "victim-changed" && !is_asgct)) {
            wrong = finding.detail;
          }
        }
        std::string difference;
        if (!session().victims().verify(halted, false, &difference)) wrong = difference;
      }
    });
    return wrong;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, MutatedWalk,
                         testing::Values("fuzz_ucontext", "fuzz_frame", "fuzz_stack",
                                         "fuzz_thread_state", "fuzz_call"),
                         [](const auto& target) { return target.param; });

TEST_P(MutatedWalk, LeavesTheVictimAsItWas) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::c1, ScenarioId::interpreted_recursion,
                                             ScenarioId::jni_sandwich, ScenarioId::monitor_blocked,
                                             ScenarioId::native_unattached};
  start(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct),
                                                     [](const FakeWalk&) { return -1; }));
  const MapNames names(session().jvm().code_map());
  Mutator mutator(*find_mutator_profile(GetParam()), &names);
  Rng rng(7);
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      mutator.pin(scenario, mode);
      int mutated = 0;
      EXPECT_EQ(execute_random(WalkerId::plugin, scenario, mutator, rng, 300, &mutated), "")
          << name_of(scenario) << " " << name_of(mode);
      EXPECT_GT(mutated, 100) << "most inputs of a target change something";
      // The real walker too; a crash that ends this process's walks ends the loop.
      EXPECT_EQ(execute_random(WalkerId::asgct, scenario, mutator, rng, 100, &mutated), "")
          << name_of(scenario) << " " << name_of(mode);
    }
  }
}

}  // namespace
}  // namespace framestorm
