// Frames of native methods, and of C and C++.
#include <algorithm>

#include "harness/oracles/walker_oracle_fixture.h"

namespace framestorm::walker_oracle_test {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::Walked;
using stand_in::Defect;

TEST_F(WalkerOracleTest, AFrameOfANativeMethodHasItsPc) {
  ASSERT_TRUE(start_and_halt(ScenarioId::parked));
  Input plain = input(WalkerId::asgct2);
  plain.scenario = ScenarioId::parked;
  const auto reported = [&] { return times_reported(plain, "made-frame-outside-code-cache"); };
  EXPECT_EQ(reported(), 0);
  control_->defect = Defect::native_without_pc;
  EXPECT_EQ(reported(), 1);
}

TEST_F(WalkerOracleTest, NativeFramesHaveTheBciTheirApiSays) {
  ASSERT_TRUE(start_and_halt(ScenarioId::native_method));
  Input plain = input(WalkerId::asgst);
  plain.scenario = ScenarioId::native_method;
  const Walked right = walk(plain);
  EXPECT_TRUE(right.findings.empty()) << explain(right);
  control_->defect = Defect::native_bci_zero;
  const Walked wrong = walk(plain);
  EXPECT_EQ(std::ranges::count(clauses_of(wrong.findings), "contract:native-bci"), 1)
      << explain(wrong);
}

// The packed layout has their pc only.
TEST_F(WalkerOracleTest, NativeFramesWithoutAMethodAreHeldToTheirPlace) {
  ASSERT_TRUE(start_and_halt(ScenarioId::native_method));
  Input plain = input(WalkerId::asgct2_packed);
  plain.scenario = ScenarioId::native_method;
  const auto clauses = [&] { return clauses_of(walk(plain).findings); };

  const Walked right = walk(plain);
  EXPECT_TRUE(right.findings.empty()) << explain(right);
  ASSERT_GT(right.methods.size(), made.c_frames.size() + 1);
  EXPECT_EQ(right.methods[made.c_frames.size()], kUnnamedNative);
  control_->defect = Defect::native_elsewhere;
  EXPECT_EQ(std::ranges::count(clauses(), "contract:disagrees-with-asgct2"), 1);
  control_->defect = Defect::leaves_out_a_frame;
  EXPECT_EQ(std::ranges::count(clauses(), "contract:wrong-frames"), 1);
  EXPECT_EQ(std::ranges::count(clauses(), "contract:disagrees-with-asgct"), 1);
  control_->defect = Defect::none;
  made.native_pc = 0x100;
  EXPECT_EQ(std::ranges::count(clauses(), "contract:made-frame-outside-code-cache"), 1);

  // In code that was compiled for it, it has a name, which then has to be right.
  constexpr std::string_view kSpin = "framestorm/Harness.spinInNative";
  const auto compiled = [&](bool spin) {
    for (const CodeEntry& code : session().jvm().code_map().entries()) {
      const bool native = code.kind == CodeKind::nmethod && code.tier == 0;
      if (native && (code.name == kSpin) == spin) return code.begin;
    }
    return uintptr_t{0};
  };
  made.native_pc = compiled(/*spin=*/true);
  ASSERT_NE(made.native_pc, 0U);
  const Walked named = walk(plain);
  EXPECT_TRUE(named.findings.empty()) << explain(named);
  EXPECT_EQ(named.methods[made.c_frames.size()], kSpin);
  made.native_pc = compiled(/*spin=*/false);  // each JVM has some at its start
  ASSERT_NE(made.native_pc, 0U);
  EXPECT_EQ(std::ranges::count(clauses(), "contract:disagrees-with-asgct"), 1);
}

TEST_F(WalkerOracleTest, AnUnnamedNativeMethodOnTopMayHaveAnotherPcThanTheRegister) {
  start({ScenarioId::math_stubs});  // whose top frames may be any of the JDK's
  ASSERT_FALSE(HasFatalFailure());
  JNIEnv* const env = Jvm::get().env();
  const jmethodID native = env->GetMethodID(env->FindClass("java/lang/Object"), "hashCode", "()I");
  Input plain = input(WalkerId::asgct);
  plain.scenario = ScenarioId::math_stubs;
  bool walked = false;
  for (int i = 0; i < 200 && !walked; ++i) {
    halt(ScenarioId::math_stubs);
    ASSERT_FALSE(HasFatalFailure());
    stand_by(ScenarioId::math_stubs);
    // No native method is on top yet: the stand-in moves each.
    const Walked as_it_is = walk(plain);
    walked = as_it_is.outcome.result > 2 && as_it_is.frames.front().bci >= 0;
  }
  ASSERT_TRUE(walked) << "no halt in a Java method that AsyncGetCallTrace walks";
  made.one_more_native = native;
  control_->defect = Defect::native_elsewhere;
  plain.walker = WalkerId::asgct2_packed;
  const Walked elsewhere = walk(plain);
  const auto clauses = clauses_of(elsewhere.findings);
  EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgct2"), 1) << explain(elsewhere);
  EXPECT_EQ(std::ranges::count(clauses, "contract:disagrees-with-asgst-frame"), 0)
      << explain(elsewhere);
}

TEST_F(WalkerOracleTest, FramesOfCHaveNoPcInCodeTheVmMade) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  Input with_c_frames = input(WalkerId::asgst);
  with_c_frames.call.options = kIncludeCFrames;
  const Walked right = walk(with_c_frames);
  EXPECT_TRUE(right.findings.empty()) << explain(right);
  made.c_frame_pc = victim(ScenarioId::c1).pc;
  const Walked wrong = walk(with_c_frames);
  EXPECT_EQ(std::ranges::count(clauses_of(wrong.findings), "contract:cpp-frame-in-made-code"), 1)
      << explain(wrong);
}

TEST_F(WalkerOracleTest, FramesOfCHaveTheirPcInCodeWhateverIsMutated) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  Input mutated = mutated_input(WalkerId::asgst_iterator);
  mutated.call.options = kIncludeCFrames;
  const auto in_no_code = [&] { return times_reported(mutated, "cpp-frame-in-no-code"); };
  made.c_frame_pc = kPcOfC;
  EXPECT_EQ(in_no_code(), 0);
  static const int data = 0;
  made.c_frame_pc = reinterpret_cast<uintptr_t>(&data);
  EXPECT_EQ(in_no_code(), 1);
}

// The scenario's are two functions of the harness, the inner one called by the outer one.
TEST_F(WalkerOracleTest, FramesOfCAreThoseOfTheUnwinder) {
  start({ScenarioId::native_method, ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  stand_by(ScenarioId::native_method);
  ASSERT_FALSE(made.c_frames.empty());
  const std::vector<NativeFrame> right = made.c_frames;
  const auto wrong = [this](WalkerId walker, Mode mode) {
    Input plain = input(walker, mode);
    plain.scenario = ScenarioId::native_method;
    plain.call.options = kIncludeCFrames;
    return times_reported(plain, "wrong-c-frames");
  };
  for (const WalkerId walker : {WalkerId::asgst, WalkerId::asgct2, WalkerId::asgst_iterator}) {
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      EXPECT_EQ(wrong(walker, mode), 0);
      made.c_frames.back().pc += 1;
      EXPECT_EQ(wrong(walker, mode), 1) << "another place";
      made.c_frames = right;
      made.c_frames.pop_back();
      EXPECT_EQ(wrong(walker, mode), 1) << "one missing";
      made.c_frames = right;
      made.c_frames.push_back({.pc = right.back().pc, .sp = right.back().sp + 8});
      EXPECT_EQ(wrong(walker, mode), 1) << "one too many";
      made.c_frames = right;
    }
  }
  Input plain = input(WalkerId::asgst);
  plain.scenario = ScenarioId::native_method;
  plain.call.options = kIncludeCFrames;
  const auto refused = [&] { return times_reported(plain, "refuses-c-frames"); };
  EXPECT_EQ(refused(), 0);
  control_->defect = Defect::refuses;
  EXPECT_EQ(refused(), 1);
  control_->defect = Defect::none;
  made.c_frames.front().sp -= 8;
  EXPECT_EQ(wrong(WalkerId::asgst_iterator, Mode::separate_thread), 1) << "another sp";
  session().release_world();

  stand(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(made.c_frames.empty());
  plain.scenario = ScenarioId::c1;
  EXPECT_EQ(clauses_of(walk(plain).findings), std::vector<std::string>());
  made.c_frames = right;
  EXPECT_EQ(clauses_of(walk(plain).findings), std::vector<std::string>{"contract:wrong-c-frames"});
}

// call_stub's return address is found on the stack, and what has called it from there.
void WalkerOracleTest::expect_frames_of_c_below(ScenarioId scenario, std::string_view entry) {
  start_if_had(scenario);
  if (HasFatalFailure() || IsSkipped()) return;
  stand(scenario);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(scenario);
  const CodeMap& code = session().jvm().code_map();
  const uintptr_t stub = entry_of(CodeKind::stub, std::string(entry));
  ASSERT_NE(stub, 0U);
  const auto word_at = [](uintptr_t place) { return *reinterpret_cast<const uintptr_t*>(place); };
  uintptr_t place = walked.sp;
  while (place < walked.stack_base && code.find(word_at(place)) != code.find(stub)) {
    place += sizeof(uintptr_t);
  }
  ASSERT_LT(place, walked.stack_base);
  const uintptr_t fp = word_at(place - sizeof(uintptr_t));
  ucontext_t caller;
  copy_context(walked.context_copy, &caller);
  set_register(&caller, Register::pc, word_at(fp + sizeof(uintptr_t)));
  set_register(&caller, Register::sp, fp + 2 * sizeof(uintptr_t));
  set_register(&caller, Register::fp, word_at(fp));
  const auto callers = unwinder_.unwind(
      caller, [](const void*, uintptr_t pc) { return Jvm::get().code_map().in_code_cache(pc); },
      nullptr);
  ASSERT_GT(callers.size(), 1U);
  made.below_java = {{.pc = word_at(place), .sp = place + sizeof(uintptr_t)}};
  made.below_java.insert(made.below_java.end(), callers.begin(), callers.end());
  const std::vector<NativeFrame> right = made.below_java;
  // AsyncGetCallTrace's Java frames, which end at an upcall, are not what is asked here.
  const auto wrong = [&] {
    Input plain = input(WalkerId::asgst_iterator);
    plain.scenario = scenario;
    plain.call.options = kIncludeCFrames;
    return times_reported(plain, "wrong-c-frames");
  };
  EXPECT_EQ(wrong(), 0);
  made.below_java[2].pc += 1;
  EXPECT_EQ(wrong(), 1) << "another place";
  made.below_java = right;
  made.below_java[1].sp -= 8;
  EXPECT_EQ(wrong(), 1) << "another sp";
  made.below_java = right;
  made.below_java.erase(made.below_java.begin() + 1);
  EXPECT_EQ(wrong(), 1) << "one missing";
  made.below_java = {right.front()};
  EXPECT_EQ(wrong(), 1) << "all missing";
  made.below_java.front().sp += sizeof(uintptr_t);
  EXPECT_EQ(wrong(), 1) << "all missing, and what it has called is interpreted and has a parameter";
}

TEST_F(WalkerOracleTest, FramesOfCBelowJavaAreThoseOfTheUnwinder) {
  expect_frames_of_c_below(ScenarioId::c1, "call_stub");
}

TEST_F(WalkerOracleTest, FramesOfCBelowAnUpcallAreThoseOfTheUnwinder) {
  expect_frames_of_c_below(ScenarioId::ffi_upcall, "upcall_stub");
}

}  // namespace framestorm::walker_oracle_test
