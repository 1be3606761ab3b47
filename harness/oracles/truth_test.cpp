// What a walker may leave out or refuse, and when it has to: oracles truth, kinds, exiting and collection.
#include <algorithm>
#include <cstring>
#include <set>

#include "harness/base/poke.h"
#include "harness/oracles/walker_oracle_fixture.h"

namespace framestorm::walker_oracle_test {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::Walked;
using stand_in::Defect;

// AsyncGetCallTrace has those on the stack, and then the carrier's.
TEST_F(WalkerOracleTest, ATraceWithoutTheFramesInTheHeapSaysSo) {
  constexpr ScenarioId kScenario = ScenarioId::virtual_remounted;
  start_if_had(kScenario);
  if (HasFatalFailure() || IsSkipped()) return;
  stand(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  for (const WalkerId walker : {WalkerId::asgst, WalkerId::asgct2}) {
    Input plain = input(walker);
    plain.scenario = kScenario;
    const auto says_nothing = [&] { return times_reported(plain, "leaves-out-and-does-not-say"); };
    control_->defect = Defect::none;
    EXPECT_EQ(says_nothing(), walker == WalkerId::asgst ? 1 : 0)
        << "AsyncGetCallTrace2 cannot say it";
    control_->defect = Defect::says_frozen;
    EXPECT_EQ(says_nothing(), 0);
  }
}

// JFR's trace has those in the heap, too: one that has no more than the first frame is short.
TEST_F(WalkerOracleTest, ATraceThatSeesTheHeapHasAllOfIt) {
  constexpr ScenarioId kScenario = ScenarioId::virtual_cycling;
  start_if_had(kScenario);
  if (HasFatalFailure() || IsSkipped()) return;
  // Of those of AsyncGetCallTrace.
  class OneFrame final : public Walker {
   public:
    explicit OneFrame(Walker* asgct) : Walker(traits_of(WalkerId::jfr_trace)), asgct_(asgct) {}
    int32_t walk(const WalkTarget& target, std::byte* frames, int32_t,
                 void* context) noexcept override {
      struct RealFrame {
        jint bci;
        jmethodID method;
      } real;
      const ThreadIdentity::Scoped as_victim(Jvm::get().identity(), target.java_thread);
      if (asgct_->walk(target, reinterpret_cast<std::byte*>(&real), 1, context) != 1) return 0;
      std::memset(frames, 0, layout().stride);
      std::memcpy(frames + layout().method, static_cast<const void*>(&real.method),
                  sizeof(jmethodID));
      std::memcpy(frames + layout().bci, &real.bci, sizeof real.bci);
      return 1;
    }

   private:
    Walker* asgct_;
  };
  executor().replace_walker(std::make_unique<OneFrame>(asgct()));
  Input plain = input(WalkerId::jfr_trace);
  plain.scenario = kScenario;
  std::set<bool> of_victim;
  for (int i = 0; i < 200 && of_victim.size() < 2; ++i) {
    halt(kScenario);
    ASSERT_FALSE(HasFatalFailure());
    const Walked walked = walk(plain);
    const auto trace = executor().last_trace();
    if (trace.empty()) continue;
    // Else the carrier's alone.
    const bool own = trace.front().method.starts_with("framestorm/");
    of_victim.insert(own);
    EXPECT_EQ(
        std::ranges::count(clauses_of(walked.findings), "contract:leaves-out-and-does-not-say"),
        own ? 1 : 0)
        << trace.front().method << ": " << explain(walked);
  }
  EXPECT_TRUE(of_victim.contains(true));
}

// The VM does not know it, and by other ways it is not there.
TEST_F(WalkerOracleTest, AThreadThatWalksItselfIsThere) {
  constexpr ScenarioId kScenario = ScenarioId::native_unattached;
  start({kScenario});
  ASSERT_FALSE(HasFatalFailure());
  halt(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  *control_ = {};
  control_->defect = Defect::loses_the_thread;
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    Input plain = input(WalkerId::asgst, mode);
    plain.scenario = kScenario;
    EXPECT_EQ(times_reported(plain, "thread-not-found"), mode == Mode::same_thread ? 1 : 0);
  }
}

// In a stub of a virtual call no frame stands. AsyncGetCallTrace refuses that by design.
TEST_F(WalkerOracleTest, AThreadInJavaIsRefusedAtNoInstruction) {
  constexpr ScenarioId kScenario = ScenarioId::vtable_dispatch;
  start({kScenario});
  ASSERT_FALSE(HasFatalFailure());
  const auto in_stub = [&] {
    const auto* const code = session().jvm().code_map().find(victim(kScenario).pc);
    // Not in that of a safepoint's polls, say, which has a frame.
    return code != nullptr && code->name.find("vtable stub") != std::string::npos;
  };
  halt(kScenario);
  for (uint64_t i = 0; i < 1000 && !in_stub() && !HasFatalFailure(); ++i) {
    if (!session().step_on(kScenario, i << 16)) halt(kScenario);
  }
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(in_stub());
  stand_by(kScenario);
  control_->defect = Defect::refuses;
  Input plain = input(WalkerId::asgst);
  plain.scenario = kScenario;
  EXPECT_EQ(times_reported(plain, "refuses-between-frames"), 1);
  plain.walker = WalkerId::asgct;
  EXPECT_FALSE(walk(plain).outcome.succeeded());
  EXPECT_EQ(times_reported(plain, "refuses-between-frames"), 0);
}

TEST_F(WalkerOracleTest, OutsideJavaAThreadIsNotRefusedWhoseAnchorStands) {
  ASSERT_TRUE(start_and_halt(ScenarioId::parked));
  control_->defect = Defect::refuses;
  Input plain = input(WalkerId::asgst);
  plain.scenario = ScenarioId::parked;
  const auto reported = [&] { return times_reported(plain, "refuses-a-standing-frame"); };
  EXPECT_EQ(reported(), 1);
  const auto at = [&](size_t offset) -> uintptr_t& {
    auto* const thread = static_cast<std::byte*>(victim(ScenarioId::parked).java_thread);
    return *reinterpret_cast<uintptr_t*>(thread + offset);
  };
  const ThreadLayout& layout = session().jvm().layout();
  // After each walk the thread is put right.
  at(layout.last_java_pc) = 0;
  EXPECT_EQ(reported(), 1) << "an anchor without its pc says where, too";
  plain.walker = WalkerId::asgct;
  at(layout.last_java_pc) = 0;
  const Walked refused = walk(plain);
  EXPECT_FALSE(refused.outcome.succeeded());
  EXPECT_EQ(std::ranges::count(clauses_of(refused.findings), "contract:refuses-a-standing-frame"),
            0)
      << "not to AsyncGetCallTrace";
  plain.walker = WalkerId::asgst;
  const Poke anchor(&at(layout.last_java_sp), uintptr_t{0});
  EXPECT_EQ(reported(), 0) << "nothing says where its Java frames are";
  at(layout.last_java_sp) = 0;
  EXPECT_EQ(times_reported(plain, "refuses-what-asgct2-walks"), 0)
      << "asgct2 goes by the frames of C";
}

TEST_F(WalkerOracleTest, OnlyAThreadThatIsExitingIsRefusedAsSuch) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  const ThreadLayout& layout = session().jvm().layout();
  ASSERT_NE(layout.terminated, 0U);
  const auto clauses = [&](WalkerId walker) { return clauses_of(walk(input(walker)).findings); };
  {
    const Poke terminated(
        static_cast<std::byte*>(victim(ScenarioId::c1).java_thread) + layout.terminated,
        layout.not_terminated + 1);
    EXPECT_EQ(
        std::ranges::count(clauses(WalkerId::asgst_iterator), "contract:walks-an-exiting-thread"),
        1);
    EXPECT_EQ(clauses(WalkerId::asgct), std::vector<std::string>{});
  }
  control_->kind = -2;  // ASGST_THREAD_EXIT
  const auto without_cause = clauses(WalkerId::asgst_iterator);
  EXPECT_EQ(std::ranges::count(without_cause, "contract:exit-without-cause"), 1);
}

TEST_F(WalkerOracleTest, ATraceDuringACollectionIsReported) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(session().jvm().collections().are_known());
  const VmStructs& structs = session().jvm().structs();
  auto offset = structs.offset("CollectedHeap", "_is_stw_gc_active");
  if (!offset) offset = structs.required_offset("CollectedHeap", "_is_gc_active");
  auto* const heap =
      *static_cast<std::byte**>(structs.static_address("Universe", "_collectedHeap"));
  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input plain = input(WalkerId::asgst);
  made.collecting = reinterpret_cast<bool*>(heap + *offset);
  *made.collecting = true;
  const Walked wrong = walk(plain);
  plain.walker = WalkerId::asgct;
  const Walked refused = walk(plain);
  plain.walker = WalkerId::asgst;
  plain.call.options = kWalkDuringUnsafeStates;
  const Walked asked_for = walk(plain);
  *made.collecting = false;
  made.collecting = nullptr;
  EXPECT_EQ(std::ranges::count(clauses_of(wrong.findings), "contract:trace-during-collection"), 1)
      << explain(wrong);
  EXPECT_TRUE(refused.findings.empty()) << explain(refused);
  EXPECT_EQ(refused.outcome.result, -2);
  EXPECT_TRUE(asked_for.findings.empty()) << explain(asked_for);
}

}  // namespace
}  // namespace framestorm::walker_oracle_test
