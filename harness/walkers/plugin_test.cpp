// A walker built outside the harness's own build (example/README.md), found right or wrong through
// the C ABI.
#include <dlfcn.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "harness/base/test_folder.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/random_input.h"
#include "harness/input/text.h"
#include "harness/input/thread_state.h"
#include "harness/oracles/oracle_set.h"
#include "harness/walkers/framestorm_walker.h"
#include "harness/walkers/plugin.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

bool reports(const Walked& walked, const std::string& clause) {
  return std::ranges::count(clauses_of(walked.findings), clause) > 0;
}

class PluginTest : public JvmTest {
 protected:
  void start_with(const std::string& shared_object, const std::vector<ScenarioId>& scenarios) {
    walker_plugin_ = FRAMESTORM_WALKERS + shared_object;
    start(scenarios);
  }
  // declared_walker.c, wrong as `options` say, on a victim in Java that is not mutated.
  Walked walk_declared(const std::string& options, ScenarioId scenario = ScenarioId::c1) {
    start_with("declared_walker.so=" + options, {scenario});
    if (HasFatalFailure()) return {};
    tell_how_ids_are_looked_up();
    halt_in_java(scenario);
    return HasFatalFailure() ? Walked() : walk(input(scenario));
  }
  void tell_how_ids_are_looked_up() {
    void* const library = dlopen(FRAMESTORM_WALKERS "declared_walker.so", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library, nullptr);
    auto* const told = static_cast<MethodTable::LookUp*>(dlsym(library, "declared_walker_look_up"));
    ASSERT_NE(told, nullptr);
    *told = session().jvm().methods().look_up();
  }
  const WalkFacts& facts() { return *executor().walker(WalkerId::plugin)->facts(); }

  static Input input(ScenarioId scenario) {
    Input input;
    input.scenario = scenario;
    input.walker = WalkerId::plugin;
    return input;
  }
};

// Has AsyncGetCallTrace's trace, and no other.
class AsgctsTrace final : public WalkMaker {
 public:
  AsgctsTrace(const Walker* asgct, const WalkRecord& record) : asgct_(*asgct), record_(record) {}
  const Walker* walker(WalkerId id) const override { return id == asgct_.id() ? &asgct_ : nullptr; }
  bool offers(const FurtherWalk& walk) const override { return walk.walker == asgct_.id(); }
  const WalkRecord* make(const FurtherWalk& walk) override {
    return offers(walk) ? &record_ : nullptr;
  }

 private:
  const Walker& asgct_;
  const WalkRecord& record_;
};

// Stress compares plugins with AsyncGetCallTrace, which below a stub may give other inlined frames.
class PluginsFrames : public PluginTest {
 protected:
  void SetUp() override {
    start_with("declared_walker.so", {ScenarioId::c1});
    ASSERT_FALSE(HasFatalFailure());
    halt_in_java(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    Input by_asgct;
    by_asgct.scenario = ScenarioId::c1;
    c1_ = walk(by_asgct).frames;
    ASSERT_GE(c1_.size(), 3U);
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.kind == CodeKind::stub) stub_ = entry.begin;
    }
    ASSERT_NE(stub_, 0U);
  }

  // Whether a plugin disagrees that has one more frame on top of AsyncGetCallTrace's, of this type.
  bool disagrees(uint8_t type_of_the_top, uintptr_t last_java_pc) {
    struct AsgctFrame {
      jint bci;
      jmethodID method;
    };
    const AsgctFrame asgcts[] = {{1, c1_[1].method}, {2, c1_[2].method}};
    const framestorm_frame plugins[] = {
        {.method = c1_[0].method, .bci = 7, .type = type_of_the_top},
        {.method = c1_[1].method, .bci = 9, .type = FRAMESTORM_FRAME_COMPILED},
        {.method = c1_[2].method, .bci = 2, .type = FRAMESTORM_FRAME_COMPILED}};
    WalkRecord answer;
    answer.depth = 100;
    answer.result = 2;
    answer.frames = reinterpret_cast<const std::byte*>(asgcts);
    // In the VM, of no scenario.
    WalkRecord record = answer;
    record.walker = WalkerId::plugin;
    record.thread_state = kThreadInVm;
    record.last_java_pc = last_java_pc;
    record.result = 3;
    record.frames = reinterpret_cast<const std::byte*>(plugins);
    Input in_stress = input(ScenarioId::count);
    const Subject subject = {.input = &in_stress,
                             .victim = &victim(ScenarioId::c1),
                             .walker = executor().walker(WalkerId::plugin),
                             .jvm = &session().jvm(),
                             .methods = &session().jvm().methods(),
                             .unmutated = true};
    AsgctsTrace maker(executor().walker(WalkerId::asgct), answer);
    const Needs offered = {Need::further_walks, Need::trace};
    OracleSet oracles(offered);
    Violations found;
    oracles.judge({record, subject}, maker, offered, &found);
    return std::ranges::count(found.findings(), "disagrees-with-asgct", &Finding::clause) > 0;
  }

  std::vector<Frame> c1_;
  uintptr_t stub_ = 0;
};

TEST_F(PluginsFrames, BelowAStubMayBeInlinedWhereAsgctGivesNone) {
  EXPECT_FALSE(disagrees(FRAMESTORM_FRAME_INLINED, stub_));
}

TEST_F(PluginsFrames, AreNotExcusedThatAreNotInlined) {
  EXPECT_TRUE(disagrees(FRAMESTORM_FRAME_COMPILED, stub_));
  EXPECT_TRUE(disagrees(FRAMESTORM_FRAME_JAVA, stub_));
}

TEST_F(PluginsFrames, AreNotExcusedThatAreBelowNoStub) {
  EXPECT_TRUE(disagrees(FRAMESTORM_FRAME_INLINED, 0));
}

TEST_F(PluginTest, TheExampleWalksUnmutatedVictims) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::native_method, ScenarioId::jni_sandwich,
                                             ScenarioId::interpreted_recursion, ScenarioId::c1,
                                             ScenarioId::native_unattached};
  start_with("frame_pointer_walker.so", scenarios);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      Input plain = input(scenario);
      plain.mode = mode;
      const Walked walked = walk(plain);
      EXPECT_TRUE(walked.findings.empty()) << name_of(scenario) << ": " << explain(walked);
      ASSERT_GT(walked.frames.size(), 0U) << name_of(scenario);
      EXPECT_EQ(walked.frames[0].pc, victim(scenario).pc);
      EXPECT_EQ(walked.frames[0].sp, victim(scenario).sp);
      for (size_t i = 1; i < walked.frames.size(); ++i) {
        EXPECT_GT(walked.frames[i].sp, walked.frames[i - 1].sp);
        EXPECT_LE(walked.frames[i].sp, victim(scenario).stack_base);
      }
    }
  }
  // Interpreted frames keep frame pointers: forty of one method at least.
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_GT(walk(input(ScenarioId::interpreted_recursion)).frames.size(), 40U);
}

TEST_F(PluginTest, TheExampleSurvivesMutatedVictims) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::native_method,
                                             ScenarioId::interpreted_recursion, ScenarioId::c1};
  start_with("frame_pointer_walker.so", scenarios);
  ASSERT_FALSE(HasFatalFailure());
  TestRng rng(3);
  int mutated = 0;
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (int i = 0; i < 300; ++i) {
      Input any = random_input(rng);
      any.scenario = scenario;
      any.walker = WalkerId::plugin;
      const Walked walked = walk(any);
      mutated += walked.outcome.unmutated ? 0 : 1;
      ASSERT_TRUE(walked.findings.empty()) << to_text(any) << explain(walked);
    }
  }
  EXPECT_GT(mutated, 600);
}

TEST_F(PluginTest, TheBrokenExampleIsFoundOut) {
  start_with("frame_pointer_walker_broken.so", {ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Walked plain = walk(input(ScenarioId::interpreted_recursion));
  EXPECT_TRUE(reports(plain, "unsafe_call:malloc")) << explain(plain);
  EXPECT_FALSE(reports(plain, "fault:")) << explain(plain);

  Input shallow = input(ScenarioId::interpreted_recursion);
  shallow.call.depth = DepthKind::raw;
  shallow.call.raw_depth = 5;
  const Walked past = walk(shallow);
  EXPECT_TRUE(reports(past, "contract:writes-past-frames")) << explain(past);

  Input bad_fp = input(ScenarioId::interpreted_recursion);
  bad_fp.mutations.resize(1);
  bad_fp.mutations[0].reg = Register::fp;
  bad_fp.mutations[0].value.kind = ValueKind::raw;
  bad_fp.mutations[0].value.raw = uint64_t{7} << 60;  // above any stack, and no address
  const Walked fault = walk(bad_fp);
  EXPECT_TRUE(reports(fault, "fault:")) << explain(fault);
}

TEST_F(PluginTest, TheSetjmpExampleContainsItsFaults) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::native_method,
                                             ScenarioId::interpreted_recursion, ScenarioId::c1};
  start_with("setjmp_walker.so", scenarios);
  ASSERT_FALSE(HasFatalFailure());
  TestRng rng(5);
  for (const ScenarioId scenario : scenarios) {
    halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    const Walked plain = walk(input(scenario));
    EXPECT_TRUE(plain.findings.empty()) << explain(plain);
    EXPECT_GT(plain.frames.size(), 0U);
    for (int i = 0; i < 300; ++i) {
      Input any = random_input(rng);
      any.scenario = scenario;
      any.walker = WalkerId::plugin;
      const Walked walked = walk(any);
      ASSERT_TRUE(walked.findings.empty()) << to_text(any) << explain(walked);
    }
    Input bad_fp = input(scenario);
    bad_fp.mutations.resize(1);
    bad_fp.mutations[0].reg = Register::fp;
    bad_fp.mutations[0].value.kind = ValueKind::raw;
    for (const uint64_t nowhere : {uint64_t{7} << 60, uint64_t{1} << 47, UINT64_MAX - 4095}) {
      bad_fp.mutations[0].value.raw = nowhere & ~uint64_t{7};
      for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
        bad_fp.mode = mode;
        const Walked walked = walk(bad_fp);
        EXPECT_TRUE(walked.findings.empty()) << explain(walked);
        EXPECT_TRUE(walked.outcome.succeeded());
        EXPECT_STREQ(facts().stopped, "a fault");
      }
    }
  }
}

TEST_F(PluginTest, AWalkerOfTheFirstAbiIsAccepted) {
  start_with("abi1_walker.so", {ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk(input(ScenarioId::c1));
  EXPECT_TRUE(walked.findings.empty()) << explain(walked);
  ASSERT_EQ(walked.frames.size(), 1U);
  EXPECT_EQ(walked.frames[0].pc, victim(ScenarioId::c1).pc);
  EXPECT_EQ(walked.frames[0].type, FrameType::none) << "its types are its own";
}

TEST_F(PluginTest, WalksInTheModesThatItDeclares) {
  const Walked same = walk_declared("same");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(same.findings.empty()) << explain(same);
  EXPECT_TRUE(same.outcome.succeeded());
  Input other = input(ScenarioId::c1);
  other.mode = Mode::separate_thread;
  EXPECT_EQ(walk(other).outcome.status, Outcome::Status::no_walker);
}

TEST_F(PluginTest, ATraceThatIsCutIsAFindingUnlessTheWalkerSaysSo) {
  const Walked cut = walk_declared("cut");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(cut, "contract:wrong-frames")) << explain(cut);
  EXPECT_EQ(facts().stopped, nullptr);
}

TEST_F(PluginTest, ATraceThatIsSaidToBeCutIsNone) {
  const Walked said = walk_declared("cut+said");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(said.findings.empty()) << explain(said);
  EXPECT_STREQ(facts().stopped, "two frames are enough");
}

TEST_F(PluginTest, ALastFrameOfErrorSaysSo) {
  const Walked said = walk_declared("cut+error-frame");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(said.findings.empty()) << explain(said);
  EXPECT_STREQ(facts().stopped, "unknown caller");
  ASSERT_EQ(said.methods.size(), 2U);
  EXPECT_EQ(said.methods[1], "unknown caller");
}

TEST_F(PluginTest, AWalkerThatDeclaresItsTracesCompleteMayNotSayItEither) {
  const Walked said = walk_declared("cut+said+complete");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(said, "contract:truncated")) << explain(said);
  EXPECT_TRUE(reports(said, "contract:wrong-frames")) << explain(said);
}

TEST_F(PluginTest, MethodPointersAreResolved) {
  const Walked walked = walk_declared("pointers", ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(walked.findings.empty()) << explain(walked);
  ASSERT_GT(walked.methods.size(), 40U);
  EXPECT_EQ(std::ranges::count(walked.methods, "?"), 0);
}

TEST_F(PluginTest, WhatIsNoMethodPointerIsFoundOut) {
  const Walked walked = walk_declared("no-method");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(walked, "contract:method-unresolved")) << explain(walked);
}

TEST_F(PluginTest, FramesHaveATypeOfTheHeaders) {
  const Walked walked = walk_declared("typeless");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(walked, "contract:frame-type-out-of-range")) << explain(walked);
}

TEST_F(PluginTest, SoDoTraces) {
  const Walked walked = walk_declared("bad-status");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(walked, "contract:status-out-of-range")) << explain(walked);
}

TEST_F(PluginTest, AReasonThatCannotBeReadIsTheWalkersFault) {
  const Walked walked = walk_declared("said+bad-reason");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(walked, "fault:")) << explain(walked);
}

TEST_F(PluginTest, AnOverrunIsSeenThoughTheWalkerContainsItsFault) {
  const Walked walked = walk_declared("overrun");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(clauses_of(walked.findings), std::vector<std::string>{"contract:writes-past-frames"})
      << explain(walked);
  EXPECT_TRUE(walked.outcome.succeeded());
}

TEST_F(PluginTest, AWalkerThatHearsOfNothingKeepsItsLock) {
  EXPECT_TRUE(reports(walk_declared("forgets-lock"), "fault:"));
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(input(ScenarioId::c1)).outcome.result, -200);
}

TEST_F(PluginTest, AWalkerHearsThatItsWalkWasAbandoned) {
  EXPECT_TRUE(reports(walk_declared("drops-lock"), "fault:"));
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(reports(walk(input(ScenarioId::c1)), "fault:")) << "it holds no lock any more";
}

TEST_F(PluginTest, ASignalMaskMayBeChangedForAWhile) {
  const Walked walked = walk_declared("mask");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(walked.findings.empty()) << explain(walked);
}

TEST_F(PluginTest, ButNotForGood) {
  const Walked walked = walk_declared("mask-left");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(clauses_of(walked.findings), std::vector<std::string>{"contract:signal-mask-changed"})
      << explain(walked);
}

TEST_F(PluginTest, AWalkerHearsOfThreads) {
  const Walked walked = walk_declared("threads");
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(walked.outcome.succeeded()) << explain(walked);
}

TEST_F(PluginTest, WhatIsNoWalkerIsRefusedWithTheReason) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  const auto refusal = [&](const std::string& path) -> std::string {
    try {
      make_plugin(session().jvm(), path);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal("/no/such/walker.so").find("cannot load walker plugin /no/such/walker.so"),
            std::string::npos);
  const TestFolder folder;
  const std::string text = folder / "no-walker.so";
  std::ofstream(text) << "no ELF";
  EXPECT_NE(refusal(text).find("cannot load"), std::string::npos);
  EXPECT_NE(refusal("libm.so.6").find("does not export framestorm_walker_abi"), std::string::npos);
  const std::string walkers = FRAMESTORM_WALKERS;
  EXPECT_NE(refusal(walkers + "abi1_walker.so=fast").find("ABI 1, which has no options"),
            std::string::npos);
  EXPECT_NE(refusal(walkers + "declared_walker.so=none").find("declares no mode"),
            std::string::npos);
  EXPECT_NE(refusal(walkers + "declared_walker.so=unknown").find("declares a capability that"),
            std::string::npos);
  // A file that is there is not taken apart.
  const std::string odd = folder / "a=b.so";
  std::ofstream(odd) << "no ELF";
  EXPECT_EQ(PluginSpec::parse(odd).file, odd);
  EXPECT_EQ(PluginSpec::parse("a=b=c").file, "a");
  EXPECT_EQ(PluginSpec::parse("a=b=c").options, "b=c");
}

}  // namespace
}  // namespace framestorm
