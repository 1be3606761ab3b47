// Events at instructions: that each takes effect, and that a walker which only an event breaks is found.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "harness/stepping/stepper_fixture.h"

namespace framestorm::stepping {
namespace {

using jvm_test::FakeWalk;
using jvm_test::FakeWalker;

// A walker that is right until the event.
struct BrokenBy {
  StepEvent event;
  int32_t (*walk)(const FakeWalk& walk);
  const char* clause;
  const char* detail;
};

int32_t without_a_caller(const FakeWalk& walk, int32_t count) {
  std::copy(walk.frames + 2, walk.frames + count, walk.frames + 1);
  return count - 1;
}

volatile bool walks_now = false;
int32_t not_reentrant(const FakeWalk& walk) {
  const bool inner = walks_now;
  walks_now = true;
  // Long enough to be interrupted, and the inner one leaves its mark on both.
  for (int i = 0; walks_now && i < 2000; ++i) {
  }
  const bool interrupted = !walks_now;
  walks_now = false;
  if (inner) return 0;
  const int32_t count = walk.right();
  return interrupted && count > 2 ? without_a_caller(walk, count) : count;
}

// The Method* that an ID had when it was seen first is what it takes for its method.
std::array<std::pair<jmethodID, const void*>, 64> seen = {};
int32_t keeps_methods(const FakeWalk& walk) {
  const int32_t count = walk.right();
  bool replaced = false;
  const MethodTable& methods = Jvm::get().methods();
  for (int32_t i = 0; i < count; ++i) {
    const jmethodID id = walk.frames[i].method;
    const auto at = std::ranges::find_if(
        seen, [id](const auto& one) { return one.first == id || one.first == nullptr; });
    if (at == seen.end()) continue;
    if (at->first == nullptr) *at = {id, methods.method_at(id)};
    replaced |= at->second != methods.method_at(id);
  }
  return replaced && count > 2 ? without_a_caller(walk, count) : count;
}

constexpr uintptr_t kNote = 1;
// Has a note in the thread while it walks, in a word of the anchor that means nothing before its sp is there.
int32_t with_note(const FakeWalk& walk, bool puts_back) {
  const ThreadLayout& layout = Jvm::get().layout();
  auto* const thread = static_cast<std::byte*>(walk.target->java_thread);
  if (read_at<uintptr_t>(thread, layout.last_java_sp) != 0) return walk.right();
  auto* const note = reinterpret_cast<volatile uintptr_t*>(thread + layout.last_java_fp);
  const uintptr_t before = *note;
  *note = kNote;
  const int32_t count = walk.right();
  *note = puts_back || before != kNote ? before : 0;
  return count;
}
int32_t takes_back(const FakeWalk& walk) { return with_note(walk, /*puts_back=*/false); }
int32_t puts_back(const FakeWalk& walk) { return with_note(walk, /*puts_back=*/true); }

constexpr const char* kTakesBack = "inner-walk-takes-back";

constexpr BrokenBy kBroken[] = {
    {StepEvent::signal, &not_reentrant, "caller-left-out", "signal: "},
    {StepEvent::signal, &takes_back, kTakesBack, "signal: "},
    {StepEvent::redefine, &keeps_methods, "caller-left-out", "redefine: "},
};

TEST_F(StepperTest, AWalkerThatOnlyAnEventBreaksIsFoundAndSteppedToAgain) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  for (const BrokenBy& one : kBroken) {
    seen = {};
    FakeWalker fake(asgct(), one.walk);
    const auto is_it = [&](const auto& entry) {
      return entry.second.event == one.event && entry.second.verdict == Verdict::wrong &&
             entry.second.finding.clause == one.clause &&
             entry.second.finding.detail.starts_with(one.detail);
    };
    StepLimits limits = kSteps;
    limits.outside = {};
    limits.events = {one.event};
    HaltPoint place;
    {
      Stepper stepper(session().jvm(), {&fake}, limits);
      stepper.set_injecting(false);
      ASSERT_EQ(step(stepper, ScenarioId::c1), "");
      EXPECT_TRUE(std::ranges::none_of(stepper.findings(), is_it)) << name_of(one.event);
      EXPECT_TRUE(stepper.events().counts().empty());
      stepper.set_injecting(true);
      ASSERT_EQ(step(stepper, ScenarioId::c1), "");
      stepper.settle();
      EXPECT_GT(stepper.events().counts().at(ScenarioId::c1).at(one.event).effective, 0U);
      const auto found = std::ranges::find_if(stepper.findings(), is_it);
      ASSERT_NE(found, stepper.findings().end())
          << name_of(one.event) << ": " << testing::PrintToString(clauses_of(stepper));
      place = found->second.finding.input.halt;
      EXPECT_EQ(place.event, one.event);
    }
    seen = {};
    limits.most_steps = 0;
    limits.events_at = {.first = 0, .one_in = 1};
    Stepper stepper(session().jvm(), {&fake}, limits);
    ASSERT_EQ(step(stepper, ScenarioId::c1, place), "");
    EXPECT_TRUE(std::ranges::any_of(stepper.findings(), is_it)) << name_of(one.event);
  }
}

TEST_F(StepperTest, AnInnerWalkThatPutsBackWhatItHasFoundIsNotReported) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  FakeWalker fake(asgct(), &puts_back);
  StepLimits limits = kSteps;
  limits.outside = {};
  limits.events = {StepEvent::signal};
  Stepper stepper(session().jvm(), {&fake}, limits);
  ASSERT_EQ(step(stepper, ScenarioId::c1), "");
  stepper.settle();
  EXPECT_GT(stepper.events().counts().at(ScenarioId::c1).at(StepEvent::signal).effective, 100U);
  EXPECT_FALSE(clauses_of(stepper).contains(kTakesBack));
}

// And the stack stays known.
TEST_F(StepperTest, EachEventTakesEffect) {
  start(/*can_pop_frames=*/true);
  ASSERT_FALSE(HasFatalFailure());
  for (const StepEvent event : all_of<StepEvent>()) {
    if (event == StepEvent::none) continue;
    StepLimits limits = kSteps;
    limits.events = {event};
    limits.events_at = {.first = 0, .one_in = 400};
    Stepper stepper(session().jvm(), {asgct()}, limits);
    const std::string reason = step(stepper, ScenarioId::c1);
    if (!breaks_programs(event)) {
      ASSERT_EQ(reason, "") << name_of(event);
    }
    stepper.settle();
    const EventCounts& counts = stepper.events().counts().at(ScenarioId::c1).at(event);
    EXPECT_GT(counts.effective, 0U)
        << name_of(event) << ": " << testing::PrintToString(counts.why_not);
    EXPECT_GT(counts.injected, 0U) << name_of(event);
    const Tally& tally = stepper.event_tallies().at(event)[column_of(WalkerId::asgct)];
    const uint64_t right = tally.verdicts[static_cast<size_t>(Verdict::right)];
    EXPECT_GT(right, 0U) << name_of(event);
    // A truth that goes astray stays so, and all that follows is wrong by it. AsyncGetCallTrace itself
    // is wrong at some instructions, leaves out replaced methods, which have no ID, and has few right
    // traces inside a walk or HotSpot's handler. It ends at a frame that was deoptimised: where that is a
    // caller of the method that stays, nearly all traces are right as far as they go.
    if (!is_of_a_walk(event) && event != StepEvent::redefine) {
      const uint64_t agree = right + tally.verdicts[static_cast<size_t>(Verdict::too_short)];
      EXPECT_LT(tally.verdicts[static_cast<size_t>(Verdict::wrong)], agree)
          << name_of(event) << ": " << testing::PrintToString(tally.verdicts);
    }
    EXPECT_TRUE(stepper.counts().lost.empty())
        << name_of(event) << ": " << testing::PrintToString(stepper.counts().lost);
  }
}

// HotSpot would pop another frame, and pass its arguments to the wrong method: the JVM dies within seconds.
TEST_F(StepperTest, NoFrameIsPoppedWhileItsCallIsBeingResolved) {
  start(/*can_pop_frames=*/true);
  ASSERT_FALSE(HasFatalFailure());
  StepLimits limits = kSteps;
  limits.events = {StepEvent::pop_frame};
  Stepper stepper(session().jvm(), {asgct()}, limits);
  for (int i = 0; i < 4; ++i) step(stepper, ScenarioId::deoptimized_caller);
  stepper.settle();
  const EventCounts& counts =
      stepper.events().counts().at(ScenarioId::deoptimized_caller).at(StepEvent::pop_frame);
  EXPECT_GT(counts.effective, 0U);
  EXPECT_TRUE(counts.why_not.contains(
      "HotSpot cannot pop the frame of a method whose call is being resolved"))
      << testing::PrintToString(counts.why_not);
}

// Interpreted code has nothing to be thrown away.
TEST_F(StepperTest, AnEventThatAScenarioCannotHaveSaysSo) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  StepLimits limits = kSteps;
  limits.events = {StepEvent::deoptimise};
  Stepper stepper(session().jvm(), {asgct()}, limits);
  ASSERT_EQ(step(stepper, ScenarioId::interpreted_recursion), "");
  stepper.settle();
  const auto& counts =
      stepper.events().counts().at(ScenarioId::interpreted_recursion).at(StepEvent::deoptimise);
  EXPECT_GT(counts.injected, 0U);
  EXPECT_EQ(counts.effective, 0U);
  EXPECT_TRUE(counts.why_not.contains("no method that runs has compiled code"));
}

}  // namespace
}  // namespace framestorm::stepping
