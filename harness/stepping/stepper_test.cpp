// Scenarios of a live JVM, stepped: that the truth is one, and that a walker which is wrong at one
// instruction only is found.
#include "harness/stepping/stepper.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/stepping/step_scenario.h"

namespace framestorm::stepping {
namespace {

using jvm_test::FakeFrame;
using jvm_test::FakeWalk;
using jvm_test::FakeWalker;

// Tests end by steps; what takes this time does not come there.
constexpr std::chrono::seconds kLimit{60};
// After as many, few scenarios come to an instruction that they have not come to before.
constexpr StepLimits kSteps = {.most_steps = 20'000};
constexpr StepLimits kMoreSteps = {.most_steps = 40'000};

class StepperTest : public jvm_test::JvmTest {
 protected:
  void start(bool can_pop_frames = false) {
    SessionOptions options;
    options.jvm.can_pop_frames = can_pop_frames;
    options.start_victims = false;
    start_session(options);
  }
  Walker* asgct() { return executor().walker(WalkerId::asgct); }
  std::string step(Stepper& stepper, ScenarioId scenario, const HaltPoint& only = {}) {
    return step_scenario(session().victims(), stepper, scenario, kLimit, only);
  }
  // The scenario's methods whose names begin so are compiled, and JVMTI has told of none. How many.
  size_t compile_and_forget(std::string_view methods) {
    Stepper stepper(session().jvm(), {asgct()}, kSteps);
    EXPECT_EQ(step(stepper, ScenarioId::exception_unwind), "");
    CodeMap& map = session().jvm().code_map();
    size_t told = 0;
    for (const CodeEntry& entry : map.entries()) {
      if (!entry.name.starts_with(methods)) continue;
      map.remove(reinterpret_cast<const void*>(entry.begin));
      ++told;
    }
    map.absorb();
    return told;
  }
  static std::set<std::string> clauses_of(const Stepper& stepper) {
    std::set<std::string> clauses;
    for (const auto& [key, found] : stepper.findings()) {
      clauses.insert(std::string(name_of(found.verdict)) + " " + found.finding.clause);
    }
    return clauses;
  }
};

// A walker is right everywhere but at one instruction of C1.spin's loop.
struct Wrong {
  const char* what;
  int32_t (*walk)(FakeFrame* frames, int32_t count);
  const char* found;
};
constexpr Wrong kWrongs[] = {
    {"drops a caller",
     [](FakeFrame* frames, int32_t count) {
       std::copy(frames + 2, frames + count, frames + 1);
       return count - 1;
     },
     "wrong caller-left-out"},
    {"drops the innermost frame",
     [](FakeFrame* frames, int32_t count) {
       std::copy(frames + 1, frames + count, frames);
       return count - 1;
     },
     "wrong innermost-frame-left-out"},
    {"repeats a caller",
     [](FakeFrame* frames, int32_t count) {
       std::copy_backward(frames + 1, frames + count, frames + count + 1);
       return count + 1;
     },
     "wrong frame-not-there"},
    {"has a wrong bci below the top",
     [](FakeFrame* frames, int32_t count) {
       ++frames[1].bci;
       return count;
     },
     "wrong wrong-bci"},
    {"has the right frames of another stack",
     [](FakeFrame* frames, int32_t count) {
       std::reverse(frames, frames + count);
       return count;
     },
     "wrong innermost-frame-left-out"},
    {"ends early", [](FakeFrame*, int32_t count) { return count - 1; }, "short trace-ends-early"},
    {"refuses", [](FakeFrame*, int32_t) { return -5; }, "refused no-frames"},
};

const Wrong* wrong = nullptr;
uintptr_t wrong_pc = 0;
uint64_t fake_walks = 0;

int32_t right_but_once(const FakeWalk& walk) {
  const int32_t count = walk.right();
  const uintptr_t pc = get_register(*walk.context, Register::pc);
  constexpr uint64_t kInTheLoop = 15'000;
  if (++fake_walks == kInTheLoop) wrong_pc = pc;
  return pc == wrong_pc && count > 2 ? wrong->walk(walk.frames, count) : count;
}

TEST_F(StepperTest, AWalkerThatIsWrongAtOneInstructionIsFound) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  FakeWalker fake(asgct(), &right_but_once);
  for (const Wrong& one : kWrongs) {
    wrong = &one;
    wrong_pc = fake_walks = 0;
    Stepper stepper(session().jvm(), {&fake}, kSteps);
    ASSERT_EQ(step(stepper, ScenarioId::c1), "");
    ASSERT_NE(wrong_pc, 0U) << one.what << ": " << stepper.counts().steps << " steps";
    const auto place = session().jvm().code_map().describe(wrong_pc);
    ASSERT_TRUE(place.has_value());
    const auto at_it = [&](const auto& entry) {
      const StepFinding& found = entry.second;
      return std::string(name_of(found.verdict)) + " " + found.finding.clause == one.found &&
             found.section == "C1 body" && found.finding.input.halt.delta == place->delta;
    };
    EXPECT_TRUE(std::ranges::any_of(stepper.findings(), at_it))
        << one.what << ": " << testing::PrintToString(clauses_of(stepper));
    for (const Blob& blob : stepper.catalog().blobs()) {
      if (blob.entry.name != "framestorm/C1.spin") continue;
      for (const auto& [offset, instruction] : stepper.instructions(blob)) {
        const auto& verdicts = instruction.verdicts[static_cast<size_t>(WalkerId::plugin)];
        const bool is_wrong = verdicts[static_cast<size_t>(Verdict::right)] < instruction.steps;
        const uintptr_t pc = blob.entry.begin + offset;
        if (pc >= blob.entry.frame_complete && instruction.steps > 100) {
          EXPECT_EQ(is_wrong, pc == wrong_pc) << one.what << " at +" << offset;
          EXPECT_EQ(instruction.misses.empty(), !is_wrong) << one.what << " at +" << offset;
          for (const auto& [what, miss] : instruction.misses) {
            EXPECT_EQ(std::string(name_of(what.second)) + " " + miss.clause, one.found);
            EXPECT_EQ(miss.input.halt.delta, place->delta);
            EXPECT_EQ(miss.input.scenario, ScenarioId::c1);
          }
        }
      }
    }
  }
}

TEST_F(StepperTest, ScenariosHaveATruthAtEveryInstruction) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario :
       {ScenarioId::interpreted_recursion, ScenarioId::c2_inlined, ScenarioId::osr,
        ScenarioId::jni_sandwich, ScenarioId::vtable_dispatch, ScenarioId::method_handle,
        ScenarioId::exception_unwind, ScenarioId::class_init, ScenarioId::deoptimized_caller,
        ScenarioId::adapters, ScenarioId::ffi_upcall, ScenarioId::virtual_remounted}) {
    const bool goes_on = scenario == ScenarioId::class_init || scenario == ScenarioId::ffi_upcall ||
                         scenario == ScenarioId::virtual_remounted;
    Stepper stepper(session().jvm(), {asgct()}, goes_on ? kMoreSteps : kSteps);
    const std::string reason = step(stepper, scenario);
    if (session().jvm().feature() < scenario_info(scenario).min_feature) continue;
    ASSERT_EQ(reason, "") << name_of(scenario);
    const StepCounts& counts = stepper.counts();
    EXPECT_GT(counts.judged, 1000U) << name_of(scenario);
    EXPECT_TRUE(counts.lost.empty())
        << name_of(scenario) << ": " << testing::PrintToString(counts.lost);
    EXPECT_EQ(counts.judged + counts.outside, counts.walked) << name_of(scenario);
    // A truth that goes astray stays so, and makes thousands of right traces wrong.
    for (const auto& [key, found] : stepper.findings()) {
      if (found.verdict != Verdict::wrong) continue;
      EXPECT_LT(found.count * 20, counts.judged)
          << name_of(scenario) << ": " << found.position << ": " << found.finding.detail << "\n"
          << testing::PrintToString(found.trace) << "\n"
          << testing::PrintToString(found.truth);
    }
  }
}

// Its calls would be run past like those of native code, with their return addresses replaced; but HotSpot
// reads them.
TEST_F(StepperTest, CodeThatNobodyHasToldOfIsNotNativeCode) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_GE(compile_and_forget("framestorm/ExceptionUnwind."), 3U);
  Stepper stepper(session().jvm(), {asgct()}, kSteps);
  ASSERT_EQ(step(stepper, ScenarioId::exception_unwind), "");
  const auto& lost = stepper.counts().lost;
  const auto untold = lost.find("code that JVMTI has not told of yet");
  ASSERT_NE(untold, lost.end());
  EXPECT_GT(untold->second, 1000U) << stepper.counts().passed << " were passed";
}

// The called methods are left by exceptions alone.
TEST_F(StepperTest, TheTruthIsKnownAgainWhereAnExceptionLeavesCodeThatNobodyHasToldOf) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(compile_and_forget("framestorm/ExceptionUnwind.level"), 3U);
  Stepper stepper(session().jvm(), {asgct()}, kSteps);
  ASSERT_EQ(step(stepper, ScenarioId::exception_unwind), "");
  EXPECT_GT(stepper.counts().lost.at("code that JVMTI has not told of yet"), 1000U);
  uint64_t steps = 0;
  for (const Blob& blob : stepper.catalog().blobs()) {
    if (blob.entry.name != "framestorm/ExceptionUnwind.loop") continue;
    for (const auto& [offset, instruction] : stepper.instructions(blob)) {
      steps += instruction.steps;
      const auto& verdicts = instruction.verdicts[static_cast<size_t>(WalkerId::asgct)];
      EXPECT_EQ(verdicts[static_cast<size_t>(Verdict::unjudged)], 0U) << "at +" << offset;
    }
  }
  EXPECT_GT(steps, 100U);
}

// By the names that HotSpot 17, 21 and 25 give them. Which ones there are depends on the processor, too.
constexpr std::string_view kMathStubs[] = {
    "updateBytesCRC32", "f2i_fixup", "f2l_fixup", "d2i_fixup", "d2l_fixup",
    // 17, 21
    "libmSin", "libmCos", "libmTan", "libmExp", "libmPow", "libmLog", "libmLog10", "libmFmod",
    // 25
    "dsin", "dcos", "dtan", "dexp", "dpow", "dlog", "dlog10", "fmod", "dtanh", "dcbrt"};
constexpr std::string_view kCryptoStubs[] = {"md5_implCompress",
                                             "md5_implCompressMB",
                                             "sha1_implCompress",
                                             "sha1_implCompressMB",
                                             "sha256_implCompress",
                                             "sha256_implCompressMB",
                                             "sha512_implCompress",
                                             "sha512_implCompressMB",
                                             "sha3_implCompress",
                                             "sha3_implCompressMB",
                                             "double_keccak",
                                             "aescrypt_encryptBlock",
                                             "aescrypt_decryptBlock",
                                             "cipherBlockChaining_encryptAESCrypt",
                                             "cipherBlockChaining_decryptAESCrypt",
                                             "electronicCodeBook_encryptAESCrypt",
                                             "electronicCodeBook_decryptAESCrypt",
                                             "counterMode_AESCrypt",
                                             "galoisCounterMode_AESCrypt",
                                             "ghash_processBlocks",
                                             "chacha20Block",
                                             "poly1305_processBlocks",
                                             "kyberNtt",
                                             "kyberInverseNtt",
                                             "kyberNttMult",
                                             "kyberAddPoly_2",
                                             "kyberAddPoly_3",
                                             "kyber12To16",
                                             "kyberBarrettReduce",
                                             "dilithiumAlmostNtt",
                                             "dilithiumAlmostInverseNtt",
                                             "dilithiumNttMult",
                                             "dilithiumMontMulByConstant",
                                             "dilithiumDecomposePoly",
                                             "multiplyToLen",
                                             "squareToLen",
                                             "mulAdd",
                                             "bigIntegerLeftShiftWorker",
                                             "bigIntegerRightShiftWorker",
                                             "intpoly_montgomeryMult_P256",
                                             "intpoly_assign",
                                             "implEncode",
                                             "implDecode",
                                             "base64_encodeBlock",
                                             "base64_decodeBlock",
                                             "updateBytesCRC32",
                                             "updateBytesCRC32C",
                                             "updateBytesAdler32",
                                             "vectorizedMismatch"};

TEST_F(StepperTest, EachStubOfNumbersAndCiphersThatThereIsIsStepped) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  const std::pair<ScenarioId, std::span<const std::string_view>> scenarios[] = {
      {ScenarioId::math_stubs, kMathStubs}, {ScenarioId::crypto_stubs, kCryptoStubs}};
  for (const auto& [scenario, names] : scenarios) {
    Stepper stepper(session().jvm(), {asgct()}, {.most_steps = 200'000});
    ASSERT_EQ(step(stepper, scenario), "");
    std::set<std::string_view> stepped;
    for (const Blob& blob : stepper.catalog().blobs()) {
      if (!stepper.instructions(blob).empty()) stepped.insert(blob.entry.name);
    }
    int there = 0;
    for (const CodeEntry& entry : session().jvm().code_map().entries()) {
      if (entry.kind != CodeKind::stub || std::ranges::find(names, entry.name) == names.end())
        continue;
      ++there;
      EXPECT_TRUE(stepped.contains(entry.name)) << name_of(scenario) << ": " << entry.name;
    }
    EXPECT_GE(there, 10) << name_of(scenario);
  }
}

// The code that an instruction of the deoptimisation blob was stepped to from.
std::set<std::string> enters_deoptimization;
std::string stepped_before;
int32_t notes_entries(const FakeWalk& walk) {
  const CodeEntry* const entry =
      Jvm::get().code_map().find(get_register(*walk.context, Register::pc));
  const std::string name = entry == nullptr ? "" : entry->name;
  if (name == "DeoptimizationBlob" && name != stepped_before) {
    enters_deoptimization.insert(stepped_before);
  }
  stepped_before = name;
  return walk.right();
}

// C1's stubs jump to it where the bytecode is to be executed again (Deoptimization::Unpack_reexecute).
TEST_F(StepperTest, CodeThatIsThrownAwayWhileItIsPatchedIsExecutedAgain) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  FakeWalker fake(asgct(), &notes_entries);
  Stepper stepper(session().jvm(), {&fake}, kMoreSteps);
  ASSERT_EQ(step(stepper, ScenarioId::code_patching), "");
  EXPECT_TRUE(std::ranges::any_of(enters_deoptimization, [](const std::string& name) {
    return name.find("access_field_patching") != std::string::npos;
  })) << testing::PrintToString(enters_deoptimization);
  EXPECT_TRUE(stepper.counts().lost.empty()) << testing::PrintToString(stepper.counts().lost);
}

TEST_F(StepperTest, AFindingIsSteppedToAgain) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  FakeWalker fake(asgct(), [](const FakeWalk& walk) { return std::min(walk.right(), 1); });
  HaltPoint place;
  {
    Stepper stepper(session().jvm(), {&fake}, kSteps);
    ASSERT_EQ(step(stepper, ScenarioId::c2_inlined), "");
    ASSERT_FALSE(stepper.findings().empty());
    place = stepper.findings().begin()->second.finding.input.halt;
  }
  ASSERT_EQ(place.occurrence, 1U);
  Stepper stepper(session().jvm(), {&fake}, {});
  ASSERT_EQ(step(stepper, ScenarioId::c2_inlined, place), "");
  EXPECT_GE(stepper.arrivals(), 1U);
  EXPECT_EQ(stepper.counts().walked, stepper.arrivals());
  ASSERT_FALSE(stepper.findings().empty());
  EXPECT_EQ(stepper.findings().begin()->second.finding.input.halt, place);
}

// Right on the stepped thread, wrong from another one.
TEST_F(StepperTest, AWalkerThatIsWrongFromOutsideOnlyIsFoundAndSteppedToAgain) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  FakeWalker fake(asgct(), [](const FakeWalk& walk) {
    const int32_t count = walk.right();
    if (walk.target->same_thread || count < 3) return count;
    std::copy(walk.frames + 2, walk.frames + count, walk.frames + 1);
    return count - 1;
  });
  constexpr auto kWrongVerdict = static_cast<size_t>(Verdict::wrong);
  constexpr size_t kInside = column_of(WalkerId::plugin);
  constexpr size_t kOutside = column_of(WalkerId::plugin, Mode::separate_thread);
  const auto is_it = [](const auto& entry) {
    return entry.second.finding.clause == "caller-left-out" && entry.second.section == "C1 body";
  };
  HaltPoint place;
  {
    Stepper stepper(session().jvm(), {&fake}, kSteps);
    ASSERT_EQ(step(stepper, ScenarioId::c1), "");
    EXPECT_GT(stepper.counts().from_outside, 100U);
    EXPECT_LT(stepper.counts().from_outside, stepper.counts().walked / 2);
    const auto& tallies = stepper.sections().at("C1 body");
    EXPECT_EQ(tallies[kInside].verdicts[kWrongVerdict], 0U);
    EXPECT_GT(tallies[kOutside].verdicts[kWrongVerdict], 0U);
    const auto found = std::ranges::find_if(stepper.findings(), is_it);
    ASSERT_NE(found, stepper.findings().end()) << testing::PrintToString(clauses_of(stepper));
    EXPECT_EQ(found->second.finding.input.mode, Mode::separate_thread);
    place = found->second.finding.input.halt;
  }
  Stepper stepper(session().jvm(), {&fake}, {.same_thread = false, .outside = {.one_in = 1}});
  ASSERT_EQ(step(stepper, ScenarioId::c1, place), "");
  EXPECT_EQ(stepper.counts().from_outside, stepper.arrivals());
  EXPECT_TRUE(std::ranges::any_of(stepper.findings(), is_it));
}

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
    // traces inside a walk or HotSpot's handler.
    if (!is_of_a_walk(event) && event != StepEvent::redefine) {
      EXPECT_LT(tally.verdicts[static_cast<size_t>(Verdict::wrong)], right) << name_of(event);
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

// AsyncGetCallTrace's frames as those of an added walker.
class AsAdded : public Walker {
 public:
  AsAdded(Walker* real, const WalkerTraits& added) : Walker(added), real_(real) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    struct RealFrame {
      jint bci;
      jmethodID method;
    };
    static std::array<RealFrame, 256> real;
    const int32_t count = real_->walk(target, reinterpret_cast<std::byte*>(real.data()),
                                      std::min<int32_t>(depth, real.size()), ucontext);
    constexpr uint8_t kCompiled = 1;
    for (int32_t i = 0; i < count; ++i) {
      std::byte* const to = frames + static_cast<size_t>(i) * layout().stride;
      std::memset(to, 0, layout().stride);
      std::memcpy(to + layout().method,
                  static_cast<const void*>(&real[static_cast<size_t>(i)].method),
                  sizeof(jmethodID));
      std::memcpy(to + layout().bci, &real[static_cast<size_t>(i)].bci, sizeof(jint));
      std::memcpy(to + layout().type, &kCompiled, sizeof kCompiled);
    }
    return count;
  }

 private:
  Walker* real_;
};

// Always said to be cut, and `missing` frames are.
class SaysCut final : public AsAdded {
 public:
  SaysCut(Walker* real, const WalkerTraits& traits, int32_t missing)
      : AsAdded(real, traits), missing_(missing) {
    facts_.stopped = "a frame that cannot be walked";
  }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const int32_t count = AsAdded::walk(target, frames, depth, ucontext);
    return count > missing_ ? count - missing_ : count;
  }
  const WalkFacts* facts() const override { return &facts_; }

 private:
  const int32_t missing_;
  WalkFacts facts_;
};

TEST_F(StepperTest, AWholeTraceIsNotSaidToBeCut) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  SaysCut walker(asgct(), traits_of(WalkerId::asgct2), 0);
  Stepper stepper(session().jvm(), {&walker}, {.most_steps = 2000});
  ASSERT_EQ(step(stepper, ScenarioId::c1), "");
  EXPECT_TRUE(clauses_of(stepper).contains("wrong says-cut-where-whole"))
      << testing::PrintToString(clauses_of(stepper));
}

TEST_F(StepperTest, ACutTraceThatSaysSoIsAFindingWhereItMayNotBeCut) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  WalkerTraits traits = traits_of(WalkerId::asgct2);
  for (const bool may_be_cut : {false, true}) {
    traits.says_when_cut = may_be_cut;
    SaysCut walker(asgct(), traits, 1);
    Stepper stepper(session().jvm(), {&walker}, {.most_steps = 2000});
    ASSERT_EQ(step(stepper, ScenarioId::c1), "");
    size_t cut = 0;
    for (const auto& [key, found] : stepper.findings()) {
      if (found.finding.clause != "trace-ends-early") continue;
      ++cut;
      EXPECT_EQ(found.promised, !may_be_cut) << found.position;
    }
    EXPECT_GT(cut, 0U);
  }
}

// In the loop of C1.spin it tells where that frame and its caller's are, as asgst-iterator does.
class TellsPlaces final : public AsAdded {
 public:
  enum class Error : uint8_t { none, innermost_sp, caller_pc, caller_sp };

  TellsPlaces(Walker* real, Jvm& jvm, Error error)
      : AsAdded(real, traits_of(WalkerId::asgst_iterator)), jvm_(jvm), error_(error) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    const int32_t count = AsAdded::walk(target, frames, depth, ucontext);
    const auto& context = *static_cast<const ucontext_t*>(ucontext);
    const uintptr_t pc = get_register(context, Register::pc);
    uintptr_t sp = get_register(context, Register::sp);
    const CodeEntry* const spin = jvm_.code_map().find(pc);
    if (spin == nullptr || spin->name != "framestorm/C1.spin" || pc < spin->frame_complete ||
        pc >= spin->stubs) {
      return count;
    }
    ++told_;
    // What is inlined stands where it does.
    const auto is_spin = [&](size_t i) {
      return jvm_.methods().find(read_frame(layout(), frames, i).method)->name == spin->name;
    };
    size_t own = 0;
    while (!is_spin(own)) ++own;
    for (size_t i = 0; i <= own; ++i) {
      place(frames, i, pc, sp + (error_ == Error::innermost_sp ? 8 : 0));
    }
    const auto word = [&] { return *reinterpret_cast<const uintptr_t*>(sp); };
    const auto is_return = [&] {
      const CodeEntry* const caller = jvm_.code_map().find(word());
      return caller != nullptr && caller->name == "framestorm/C1.middle";
    };
    while (!is_return()) sp += sizeof(uintptr_t);
    place(frames, own + 1, word() + (error_ == Error::caller_pc ? 1 : 0),
          sp + (error_ == Error::caller_sp ? 24 : 8));
    return count;
  }
  uint64_t told() const { return told_; }

 private:
  void place(std::byte* frames, size_t index, uintptr_t pc, uintptr_t sp) const {
    std::byte* const frame = frames + index * layout().stride;
    std::memcpy(frame + layout().pc, &pc, sizeof pc);
    std::memcpy(frame + layout().sp, &sp, sizeof sp);
  }

  Jvm& jvm_;
  Error error_;
  uint64_t told_ = 0;
};

TEST_F(StepperTest, AFrameIsSaidToBeWhereItIs) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  using Error = TellsPlaces::Error;
  for (const Error error : {Error::none, Error::innermost_sp, Error::caller_pc, Error::caller_sp}) {
    TellsPlaces walker(asgct(), session().jvm(), error);
    Stepper stepper(session().jvm(), {&walker}, kSteps);
    ASSERT_EQ(step(stepper, ScenarioId::c1), "");
    EXPECT_GT(walker.told(), 1000U);
    EXPECT_EQ(clauses_of(stepper).contains("wrong frame-elsewhere"), error != Error::none)
        << static_cast<int>(error) << ": " << testing::PrintToString(clauses_of(stepper));
  }
}

// malloc in a walk is heard of at any instruction, as in any driver.
TEST_F(StepperTest, OtherOraclesLookToo) {
  start();
  ASSERT_FALSE(HasFatalFailure());
  FakeWalker fake(asgct(), [](const FakeWalk& walk) {
    void* volatile memory = std::malloc(64);
    std::free(memory);
    return walk.right();
  });
  Stepper stepper(session().jvm(), {&fake}, kSteps);
  ASSERT_EQ(step(stepper, ScenarioId::c1), "");
  const auto is_malloc = [](const auto& entry) {
    return entry.second.finding.kind == FindingKind::unsafe_call;
  };
  EXPECT_TRUE(std::ranges::any_of(stepper.findings(), is_malloc));
}

}  // namespace
}  // namespace framestorm::stepping
