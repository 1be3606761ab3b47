// How a victim goes on alone in a halted world: by single instructions, in its own code, and no other thread.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "harness/executor/jvm_fixture.h"
#include "harness/victim/context.h"

namespace framestorm::jvm_test {
namespace {

// Of Session::step_on(): the number of steps is in the bits that rise.
uint64_t random_of(int i) { return static_cast<uint64_t>(i) << 16 | 1; }
// The same to other code.
constexpr uint64_t kToOtherCode = uint64_t{1} << 40;

TEST_F(JvmTest, AVictimGoesOnInItsOwnCode) {
  constexpr ScenarioId kScenario = ScenarioId::c1;
  constexpr ScenarioId kOther = ScenarioId::native_method;
  start({kScenario, kOther});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  const ThreadSlot* const other = World::get().find(victim(kOther).tid);
  ASSERT_NE(other, nullptr);
  const uint32_t parked = other->parks;
  const uint64_t observed = session().victims().observed();
  victim(kScenario).kept = 3;
  std::set<uintptr_t> places;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(session().step_on(kScenario, random_of(i)));
    ASSERT_NE(victim(kScenario).slot, nullptr);
    EXPECT_EQ(victim(kScenario).pc, get_register(*victim(kScenario).slot->context, Register::pc));
    EXPECT_TRUE(in_top_code(kScenario)) << "its loop calls nothing";
    places.insert(victim(kScenario).pc);
    Input plain;
    plain.scenario = kScenario;
    const Walked walked = walk(plain);
    EXPECT_TRUE(walked.findings.empty()) << explain(walked);
  }
  EXPECT_GE(places.size(), 6U) << "a loop of a dozen instructions";
  EXPECT_EQ(other->parks, parked) << "it has stood all the time";
  EXPECT_EQ(session().victims().observed(), observed) << "it is one halt";
  EXPECT_EQ(victim(kScenario).kept, 3) << "the thread has not come to where JFR takes them";
  EXPECT_EQ(session().halts() + 40, session().places());
}

TEST_F(JvmTest, AVictimGoesOnByOneInstruction) {
  constexpr ScenarioId kScenario = ScenarioId::c1;
  constexpr int kSteps = 200;
  start({kScenario});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  std::map<uintptr_t, std::set<uintptr_t>> successors;
  for (int i = 0; i < kSteps; ++i) {
    const uintptr_t pc = victim(kScenario).pc;
    ASSERT_TRUE(session().step_once(kScenario));
    successors[pc].insert(victim(kScenario).pc);
  }
  EXPECT_GE(successors.size(), 6U) << "a loop of a dozen instructions";
  for (const auto& [pc, next] : successors) {
    EXPECT_LE(next.size(), 2U) << "what is behind " << std::hex << pc << ", and what it jumps to";
  }
  EXPECT_EQ(session().halts() + kSteps, session().places());
}

TEST_F(JvmTest, AVictimGoesOnToOtherCode) {
  constexpr ScenarioId kScenario = ScenarioId::vtable_dispatch;
  start({kScenario});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(kScenario);
  ASSERT_FALSE(HasFatalFailure());
  const auto code = [&] { return session().jvm().code_map().find(victim(kScenario).pc); };
  std::set<std::string> names;
  for (int i = 0; i < 40 && code() != nullptr; ++i) {
    const CodeEntry before = *code();
    ASSERT_TRUE(session().step_on(kScenario, kToOtherCode));
    ASSERT_NE(code(), nullptr) << "none of them calls the VM";
    EXPECT_NE(code()->begin, before.begin) << before.name << " is left in fewer instructions";
    names.insert(code()->name);
  }
  EXPECT_TRUE(std::ranges::any_of(names, [](const std::string& name) {
    return name.find("vtable stub") != std::string::npos;
  }));
  EXPECT_TRUE(names.contains("framestorm/VtableDispatch.dispatch"));
}

// There it would meet what halted threads hold.
TEST_F(JvmTest, AVictimStopsWhereItCallsTheVm) {
  constexpr ScenarioId kScenario = ScenarioId::c1_monitor;
  start({kScenario});
  ASSERT_FALSE(HasFatalFailure());
  const auto code = [&] { return session().jvm().code_map().find(victim(kScenario).pc); };
  int stopped = 0;
  for (int i = 0; i < 2000 && stopped < 3; ++i) {
    if (code() == nullptr) halt(kScenario);
    ASSERT_FALSE(HasFatalFailure());
    if (!session().step_on(kScenario, random_of(i)) || code() != nullptr) continue;
    ++stopped;
    const uintptr_t place = victim(kScenario).pc;
    EXPECT_FALSE(session().step_on(kScenario, random_of(i)));
    EXPECT_EQ(victim(kScenario).pc, place);
    const auto position = session().jvm().code_map().describe(place);
    if (position) EXPECT_EQ(position->delta, 0) << position->ref.name << ": its first instruction";
  }
  EXPECT_EQ(stopped, 3);
}

TEST_F(JvmTest, AVictimThatWaitsDoesNotGoOn) {
  start({ScenarioId::sleeping});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::sleeping);
  ASSERT_FALSE(HasFatalFailure());
  const uintptr_t pc = victim(ScenarioId::sleeping).pc;
  EXPECT_FALSE(session().step_on(ScenarioId::sleeping, 1));
  EXPECT_EQ(victim(ScenarioId::sleeping).pc, pc);
}

}  // namespace
}  // namespace framestorm::jvm_test
