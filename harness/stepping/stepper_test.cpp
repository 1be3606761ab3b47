// Scenarios of a live JVM, stepped: that the truth is one, and that a walker which is wrong at one
// instruction only is found.
#include "harness/stepping/stepper.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "harness/stepping/stepper_fixture.h"

namespace framestorm::stepping {
namespace {

using jvm_test::FakeFrame;
using jvm_test::FakeWalk;
using jvm_test::FakeWalker;

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
