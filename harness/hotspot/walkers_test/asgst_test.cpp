// AsyncGetStackTrace on live victims: every trace kind, error code, option and frame type of
// profile.h is reached, or stands in the table of what cannot be with the reason.
#include <jvmti.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/asgst_fixture.h"
#include "harness/hotspot/walkers_test/blocked_signal.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using asgst_test::AsgstTest;
using asgst_test::kEveryKind;
using asgst_test::Traced;
using jvm_test::at_end_of_handler;

TEST_F(AsgstTest, AnInterpretedStackIsJavaFramesOfTierZero) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::interpreted_recursion, 0);
  ASSERT_GT(traced.trace.num_frames, 2) << traced.why();
  EXPECT_EQ(traced.trace.kind, ASGST_JAVA_TRACE);
  EXPECT_EQ(traced.trace.env_id, victim(ScenarioId::interpreted_recursion).jni_env);
  EXPECT_EQ(traced.trace.frame_info, nullptr) << traced.why();
  EXPECT_TRUE(traced.has_tier(0));
  EXPECT_EQ(traced.count(ASGST_FRAME_CPP), 0U);
  EXPECT_TRUE(traced.trace.state & JVMTI_THREAD_STATE_RUNNABLE);
}

TEST_F(AsgstTest, InlinedMethodsAreFramesOfTheirOwn) {
  start({ScenarioId::c2_inlined});
  halt_in_java(ScenarioId::c2_inlined);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::c2_inlined, 0);
  EXPECT_GT(traced.count(ASGST_FRAME_JAVA_INLINED), 0U) << traced.why();
  EXPECT_TRUE(traced.has_tier(4));
}

TEST_F(AsgstTest, NativeMethodsHaveNoBci) {
  start({ScenarioId::native_method});
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::native_method, 0);
  ASSERT_GT(traced.count(ASGST_FRAME_JAVA_NATIVE), 0U) << traced.why();
  for (const ASGST_CallFrame& frame : traced.frames) {
    if (frame.type == ASGST_FRAME_JAVA_NATIVE) EXPECT_EQ(frame.java_frame.bci, 65535);
  }
  EXPECT_TRUE(traced.trace.state & JVMTI_THREAD_STATE_IN_NATIVE);
}

TEST_F(AsgstTest, CFramesStandBetweenTheJavaFramesAndTakeNoneAway) {
  start({ScenarioId::jni_sandwich});
  halt(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  const Traced without = walk(ScenarioId::jni_sandwich, 0);
  const Traced with = walk(ScenarioId::jni_sandwich, ASGST_INCLUDE_C_FRAMES);
  ASSERT_GT(without.trace.num_frames, 0) << without.why();
  EXPECT_EQ(without.count(ASGST_FRAME_CPP), 0U);
  EXPECT_GT(with.count(ASGST_FRAME_CPP), 3U) << with.why();
  EXPECT_EQ(with.methods(), without.methods());
  // Native code above, between and below Java.
  EXPECT_EQ(with.frames.front().type, ASGST_FRAME_CPP);
  EXPECT_EQ(with.frames.back().type, ASGST_FRAME_CPP);
  const auto first_java = std::find_if(with.frames.begin(), with.frames.end(),
                                       [](const auto& f) { return f.type != ASGST_FRAME_CPP; });
  const auto between = std::find_if(first_java, with.frames.end(),
                                    [](const auto& f) { return f.type == ASGST_FRAME_CPP; });
  EXPECT_NE(std::find_if(between, with.frames.end(),
                         [](const auto& f) { return f.type != ASGST_FRAME_CPP; }),
            with.frames.end());
}

TEST_F(AsgstTest, WhereAContinuationBeginsIsTold) {
  start({ScenarioId::virtual_fresh, ScenarioId::virtual_remounted});
  for (const auto& [scenario, type, info] :
       {std::tuple{ScenarioId::virtual_fresh, ASGST_FRAME_CONTINUATION, ""},
        std::tuple{ScenarioId::virtual_remounted, ASGST_FRAME_CONTINUATION_FROZEN,
                   ASGST_FRAMES_FROZEN}}) {
    halt_in_java(scenario);
    ASSERT_FALSE(HasFatalFailure());
    const auto text = [](const Traced& traced) {
      const auto* const said = static_cast<const char*>(traced.trace.frame_info);
      return std::string(said == nullptr ? "" : said);
    };
    const Traced whole = walk(scenario, 0);
    const Traced own = walk(scenario, ASGST_END_AT_CONTINUATION);
    ASSERT_GT(own.trace.num_frames, 1) << own.why();
    EXPECT_EQ(text(whole), info);
    EXPECT_EQ(text(own), info);
    // It is told of the stack's end only.
    EXPECT_EQ(text(walk(scenario, 0, kEveryKind, 0, whole.trace.num_frames)), "");
    EXPECT_EQ(whole.count(static_cast<uint8_t>(type)), 1U);
    EXPECT_EQ(own.frames.back().type, type);
    EXPECT_GT(whole.frames.size(), own.frames.size()) << "the carrier's frames are missing";
    for (size_t i = 0; i < own.frames.size(); ++i) {
      EXPECT_EQ(own.methods()[i], whole.methods()[i]) << i;
    }
  }
}

TEST_F(AsgstTest, UnknownOptionBitsAreIgnored) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Traced plain = walk(ScenarioId::c1, 0);
  const Traced odd = walk(ScenarioId::c1, 0xfffffff0U);
  EXPECT_GT(plain.trace.num_frames, 0) << plain.why();
  EXPECT_EQ(odd.methods(), plain.methods());
}

TEST_F(AsgstTest, DepthBoundsTheFramesFromTheTop) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Traced all = walk(ScenarioId::c1, 0);
  ASSERT_GT(all.trace.num_frames, 2) << all.why();
  for (const jint depth : {0, 1, 2, all.trace.num_frames}) {
    const Traced some = walk(ScenarioId::c1, 0, kEveryKind, 0, depth);
    EXPECT_EQ(some.trace.num_frames, depth);
    const auto methods = all.methods();
    EXPECT_EQ(some.methods(), std::vector<jmethodID>(methods.begin(), methods.begin() + depth));
  }
  EXPECT_EQ(walk(ScenarioId::c1, 0, kEveryKind, 0, -1).trace.num_frames, 0);
}

TEST_F(AsgstTest, MasksRefuseOtherKindsAndStates) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Traced kind = walk(ScenarioId::c1, 0, ASGST_GC_TRACE | ASGST_CPP_TRACE);
  EXPECT_EQ(kind.trace.num_frames, ASGST_WRONG_KIND);
  EXPECT_EQ(kind.trace.kind, ASGST_JAVA_TRACE);
  const Traced state = walk(ScenarioId::c1, 0, kEveryKind, JVMTI_THREAD_STATE_SLEEPING);
  EXPECT_EQ(state.trace.num_frames, ASGST_WRONG_STATE);
  EXPECT_TRUE(state.trace.state & JVMTI_THREAD_STATE_RUNNABLE);
  EXPECT_GT(walk(ScenarioId::c1, 0, ASGST_JAVA_TRACE | ASGST_GC_TRACE,
                 JVMTI_THREAD_STATE_RUNNABLE | JVMTI_THREAD_STATE_SLEEPING)
                .trace.num_frames,
            0);
}

TEST_F(AsgstTest, StatesAreThoseOfJvmti) {
  start({ScenarioId::monitor_blocked, ScenarioId::parked, ScenarioId::sleeping});
  halt(ScenarioId::sleeping);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(walk(ScenarioId::monitor_blocked, 0).trace.state &
              JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER);
  EXPECT_TRUE(walk(ScenarioId::parked, 0).trace.state & JVMTI_THREAD_STATE_WAITING);
  EXPECT_TRUE(walk(ScenarioId::sleeping, 0).trace.state & JVMTI_THREAD_STATE_WAITING);
}

TEST_F(AsgstTest, ThreadsThatAreNotJavasAreWalkedWhenAsked) {
  start({ScenarioId::native_attached, ScenarioId::native_unattached, ScenarioId::gc_thread,
         ScenarioId::vm_thread, ScenarioId::compiler_thread});
  halt(ScenarioId::native_attached);
  ASSERT_FALSE(HasFatalFailure());
  const uint32_t all = ASGST_INCLUDE_NON_JAVA_THREADS | ASGST_INCLUDE_C_FRAMES;
  EXPECT_EQ(walk(ScenarioId::gc_thread, 0).trace.num_frames, ASGST_THREAD_NOT_JAVA);
  EXPECT_EQ(walk(ScenarioId::vm_thread, 0).trace.num_frames, ASGST_THREAD_NOT_JAVA);
  EXPECT_EQ(walk(ScenarioId::native_unattached, 0).trace.num_frames, ASGST_NO_THREAD);
  // Who walks itself is a thread: it is only not Java's.
  {
    const ThreadIdentity::Scoped nobody(session().jvm().identity(), nullptr);
    ucontext_t* const context = victim(ScenarioId::native_unattached).slot->context;
    EXPECT_EQ(walk_context(context, ASGST_WALK_SAME_THREAD).trace.num_frames,
              ASGST_THREAD_NOT_JAVA);
  }
  // Attached, but never in Java.
  EXPECT_EQ(walk(ScenarioId::native_attached, 0).trace.num_frames, ASGST_NO_JAVA_FRAME);

  for (const auto& [scenario, kind] : {std::pair{ScenarioId::gc_thread, ASGST_GC_TRACE},
                                       std::pair{ScenarioId::vm_thread, ASGST_CPP_TRACE},
                                       std::pair{ScenarioId::native_unattached, ASGST_CPP_TRACE},
                                       std::pair{ScenarioId::native_attached, ASGST_JAVA_TRACE}}) {
    const Traced traced = walk(scenario, all);
    EXPECT_EQ(traced.trace.kind, kind) << name_of(scenario);
    EXPECT_GT(traced.trace.num_frames, 1) << name_of(scenario) << ": " << traced.why();
    EXPECT_EQ(traced.count(ASGST_FRAME_CPP), traced.frames.size());
    EXPECT_EQ(traced.trace.frame_info, nullptr) << name_of(scenario) << ": " << traced.why();
    if (kind != ASGST_JAVA_TRACE) EXPECT_EQ(traced.trace.state, -1);
  }
  EXPECT_EQ(walk(ScenarioId::gc_thread, all, ASGST_JAVA_TRACE).trace.num_frames, ASGST_WRONG_KIND);
  // Without registers there is nothing to begin with.
  const int tid = victim(ScenarioId::gc_thread).tid;
  EXPECT_EQ(walk_thread(tid, nullptr, all).trace.num_frames, ASGST_UNKNOWN_NOT_JAVA);
}

TEST_F(AsgstTest, AContextOfNoThreadIsRefused) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk_context(nullptr, 0).trace.num_frames, ASGST_NO_THREAD);
  ucontext_t elsewhere;
  copy_context(*victim(ScenarioId::c1).slot->context, &elsewhere);
  set_register(&elsewhere, Register::sp, 4096);
  EXPECT_EQ(walk_context(&elsewhere, 0).trace.num_frames, ASGST_NO_THREAD);
  // By its OS thread id the thread is known, but such an sp is of no use.
  const int tid = victim(ScenarioId::c1).tid;
  EXPECT_EQ(walk_thread(tid, &elsewhere, 0).trace.num_frames, ASGST_UNKNOWN_JAVA);
  EXPECT_GT(walk_thread(tid, victim(ScenarioId::c1).slot->context, 0).trace.num_frames, 0);
  EXPECT_EQ(walk_thread(0x7fffffff, victim(ScenarioId::c1).slot->context, 0).trace.num_frames,
            ASGST_NO_THREAD);
}

TEST_F(AsgstTest, WithoutATraceNothingIsDone) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::c1);
  void* const context = walked.slot->context;
  for (const char* const name : {"AsyncGetStackTrace", "AsyncGetStackTraceOfEnv"}) {
    function<Function>(name)(nullptr, 512, context, 0);
  }
  for (const char* const name : {"AsyncGetStackTraceOfThread", "AsyncGetStackTraceUnstopped"}) {
    function<OfThread>(name)(nullptr, 512, context, 0, walked.tid);
  }
  EXPECT_GT(walk(ScenarioId::c1, 0).trace.num_frames, 0);
}

// The kernel kills who faults with the signal blocked, and walks fault: SafeFetch does.
TEST_F(AsgstTest, WhoBlocksFaultsIsToldSo) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  for (const int signal : {SIGSEGV, SIGBUS}) {
    const BlockedSignal blocked(signal);
    EXPECT_EQ(walk(ScenarioId::c1, 0).trace.num_frames, ASGST_FAULTS_BLOCKED);
  }
  EXPECT_GT(walk(ScenarioId::c1, 0).trace.num_frames, 0);
}

TEST_F(AsgstTest, AThreadIsFoundByItsEnv) {
  start({ScenarioId::c1, ScenarioId::vm_thread});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::c1);
  const auto of_env = [&](void* env) {
    return traced(kEveryKind, 0, 512, [&](ASGST_CallTrace* trace) {
      trace->env_id = static_cast<JNIEnv*>(env);
      function<Function>("AsyncGetStackTraceOfEnv")(trace, 512, walked.slot->context, 0);
    });
  };
  const Traced traced = of_env(walked.jni_env);
  EXPECT_GT(traced.trace.num_frames, 0) << traced.why();
  EXPECT_EQ(traced.methods(), walk(ScenarioId::c1, 0).methods());
  EXPECT_EQ(of_env(reinterpret_cast<void*>(0x1234)).trace.num_frames, ASGST_NO_THREAD);
  // Only Java's threads have one.
  auto* const other = static_cast<char*>(victim(ScenarioId::vm_thread).java_thread);
  EXPECT_EQ(of_env(other + layout().jni_env).trace.num_frames, ASGST_NO_THREAD);
}

TEST_F(AsgstTest, WhatIsNoCodeIsNotWalked) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  ucontext_t changed;
  copy_context(*victim(ScenarioId::c1).slot->context, &changed);
  set_register(&changed, Register::pc, 0x1000);
  const Traced no_code = walk_context(&changed, 0);
  EXPECT_EQ(no_code.trace.num_frames, ASGST_UNKNOWN_JAVA);
  EXPECT_NE(no_code.trace.frame_info, nullptr);
}

TEST_F(AsgstTest, AnInterpretedFrameThatIsNoneIsNotWalkable) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  ucontext_t changed;
  copy_context(*victim(ScenarioId::interpreted_recursion).slot->context, &changed);
  set_register(&changed, Register::fp, 8);
  EXPECT_EQ(walk_context(&changed, 0).trace.num_frames, ASGST_NOT_WALKABLE_JAVA);
}

// A frame's word for its method may be that of another one, which is not at the frame's bytecode; and
// some of the CDS archive have no ID. At its own bytecode such a method is a frame.
TEST_F(AsgstTest, AnInterpretedFrameSaysWhatItExecutesOrWhere) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  constexpr uintptr_t kAround = 8 << 20;  // CDS archives have less
  constexpr uint16_t kNoBci = 65'535;
  const auto caller =
      *reinterpret_cast<uintptr_t* const*>(victim(ScenarioId::interpreted_recursion).fp);
  const VmStructs& structs = session().jvm().structs();
  const size_t const_method = structs.required_offset("Method", "_constMethod");
  const size_t size_of_const_method = structs.size_of("ConstMethod");
  ASSERT_NE(size_of_const_method, 0U);
  const auto is_method = function<int (*)(uintptr_t, void*)>("ASGST_GetMethodInfo");
  JNIEnv* const env = session().jvm().env();
  const auto archived = *reinterpret_cast<const uintptr_t*>(
      env->GetMethodID(env->FindClass("java/lang/Object"), "hashCode", "()I"));
  int others = 0, of_nothing = 0, without_id = 0;
  for (uintptr_t word = archived - kAround; word < archived + kAround; word += sizeof(word)) {
    const Poke method(caller - 3, word);
    const Traced traced = walk(ScenarioId::interpreted_recursion, 0, kEveryKind, 0, 2);
    if (traced.frames.size() < 2) {
      if (is_method(word, nullptr) == 0) continue;
      const void* const refused = reinterpret_cast<const void*>(word);
      const Poke bytecode(caller - 8,
                          read_at<uintptr_t>(refused, const_method) + size_of_const_method);
      const Traced at_first = walk(ScenarioId::interpreted_recursion, 0, kEveryKind, 0, 2);
      if (at_first.frames.size() < 2) continue;  // an abstract method has none
      const auto& begun = at_first.frames.back().java_frame;
      EXPECT_EQ(begun.method_id, nullptr);
      EXPECT_EQ(begun.bci, 0);
      ++without_id;
      continue;
    }
    ++others;
    const auto& frame = traced.frames.back().java_frame;
    const bool java = frame.type == ASGST_FRAME_JAVA;
    if (java && frame.method_id == nullptr && frame.bci == kNoBci) ++of_nothing;
  }
  EXPECT_GT(others, 0);
  EXPECT_EQ(of_nothing, 0) << "of " << others;
  EXPECT_GT(without_id, 0);
}

// 65535 says that there is none.
TEST_F(AsgstTest, TheLastBciOfTheLongestMethodIsGiven) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const auto caller =
      *reinterpret_cast<uintptr_t* const*>(victim(ScenarioId::interpreted_recursion).fp);
  const VmStructs& structs = session().jvm().structs();
  auto* const const_method = read_at<char*>(reinterpret_cast<const void*>(caller[-3]),
                                            structs.required_offset("Method", "_constMethod"));
  const Poke size(const_method + structs.required_offset("ConstMethod", "_code_size"),
                  uint16_t{65'535});
  const uintptr_t code = reinterpret_cast<uintptr_t>(const_method) + structs.size_of("ConstMethod");
  const Poke bytecode(caller - 8, code + 65'534);
  const Traced traced = walk(ScenarioId::interpreted_recursion, 0, kEveryKind, 0, 2);
  ASSERT_EQ(traced.frames.size(), 2U) << traced.why();
  EXPECT_EQ(traced.frames.back().java_frame.bci, 65'534);
}

TEST_F(AsgstTest, TheThreadsOwnFieldsAreNotBelieved) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  const auto broken_sp = walk_with_field<uintptr_t>(ScenarioId::parked, layout().last_java_sp, 8);
  EXPECT_EQ(broken_sp.trace.num_frames, ASGST_UNKNOWN_NOT_JAVA);
  const auto no_frame = walk_with_field<uintptr_t>(ScenarioId::parked, layout().last_java_sp, 0);
  EXPECT_EQ(no_frame.trace.num_frames, ASGST_NO_JAVA_FRAME);
  const auto state = walk_with_field<uint32_t>(ScenarioId::parked, layout().state, 4711);
  EXPECT_EQ(state.trace.num_frames, ASGST_UNKNOWN_STATE);
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0);
}

TEST_F(AsgstTest, DyingThreadsAreRefused) {
  start({ScenarioId::thread_exiting});
  bool refused = false;
  for (int i = 0; i < 50 && !refused; ++i) {
    halt(ScenarioId::thread_exiting);
    ASSERT_FALSE(HasFatalFailure());
    refused = walk(ScenarioId::thread_exiting, 0).trace.num_frames == ASGST_THREAD_EXIT;
  }
  EXPECT_TRUE(refused);
}

// Lets all victims leave their program points.
void stop_victims(JNIEnv* env) {
  const jclass harness = env->FindClass("framestorm/Harness");
  ASSERT_NE(harness, nullptr);
  env->SetStaticBooleanField(harness, env->GetStaticFieldID(harness, "stopped", "Z"), JNI_TRUE);
}

TEST_F(AsgstTest, WhileAThreadDeoptimisesItIsRefused) {
  start({ScenarioId::deoptimized_caller});
  halt(ScenarioId::deoptimized_caller);
  ASSERT_FALSE(HasFatalFailure());
  const Traced before = walk(ScenarioId::deoptimized_caller, 0);
  EXPECT_GT(before.trace.num_frames, 0) << before.why();
  const int tid = victim(ScenarioId::deoptimized_caller).tid;
  session().release_world();
  session().victims().resume(ScenarioId::deoptimized_caller);
  constexpr uint64_t kOnItsWayNs = 1'000'000;
  ASSERT_TRUE(World::get().halt_after(tid, kOnItsWayNs));
  stop_victims(session().jvm().env());
  ASSERT_FALSE(HasFatalFailure());
  // It returns into the frame that is not valid any more.
  const CodeRef helper = {CodeKind::function, 0, CodeAnchor::entry,
                          "_ZN14Deoptimization24fetch_unroll_info_helperEP10JavaThreadi"};
  StepGoal goal;
  goal.steps = 10'000'000;
  goal.pc = session().jvm().code_map().resolve(helper).value_or(0);
  ASSERT_NE(goal.pc, 0U);
  ThreadSlot* const slot = World::get().find(tid);
  ASSERT_TRUE(World::get().step(slot, goal));
  ASSERT_EQ(get_register(*slot->context, Register::pc), goal.pc);

  const Traced refused = walk_context(slot->context, 0);
  EXPECT_EQ(refused.trace.num_frames, ASGST_DEOPT) << refused.why();
  EXPECT_EQ(refused.trace.kind, ASGST_DEOPT_TRACE);
  EXPECT_EQ(walk_context(slot->context, 0, ASGST_JAVA_TRACE).trace.num_frames, ASGST_WRONG_KIND);
  const uint32_t all = ASGST_INCLUDE_NON_JAVA_THREADS | ASGST_INCLUDE_C_FRAMES;
  const Traced walked = walk_context(slot->context, all);
  EXPECT_EQ(walked.trace.kind, ASGST_DEOPT_TRACE);
  EXPECT_GT(walked.count(ASGST_FRAME_CPP), 0U) << walked.why();
  ucontext_t nowhere = *slot->context;
  set_register(&nowhere, Register::pc, 0);
  EXPECT_EQ(walk_context(&nowhere, ASGST_INCLUDE_NON_JAVA_THREADS).trace.num_frames,
            ASGST_UNKNOWN_JAVA);
}

TEST_F(AsgstTest, AQueueTellsOfAMethodThatIsBeingEntered) {
  start({ScenarioId::interpreted_recursion});
  halt(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  Victim& leaving = victim(ScenarioId::interpreted_recursion);
  session().release_world();
  session().victims().resume(ScenarioId::interpreted_recursion);
  constexpr uint64_t kOnItsWayNs = 1'000'000;
  ASSERT_TRUE(World::get().halt_after(leaving.tid, kOnItsWayNs));
  stop_victims(session().jvm().env());
  ASSERT_FALSE(HasFatalFailure());
  // It calls Harness.leave, which is native.
  StepGoal goal;
  goal.steps = 10'000'000;
  goal.pc = session()
                .jvm()
                .code_map()
                .resolve({CodeKind::codelet, 0, CodeAnchor::entry,
                          "native method entry point (kind = native)"})
                .value_or(0);
  ASSERT_NE(goal.pc, 0U);
  ASSERT_TRUE(World::get().step(leaving.slot, goal));
  session().victims().observe_halted();
  Input input;
  input.scenario = ScenarioId::interpreted_recursion;
  input.walker = WalkerId::asgst_queue;
  input.queue_calls = {
      {QueueCallKind::register_queue, 3}, {QueueCallKind::enqueue, 0}, {QueueCallKind::poll, 0}};
  const auto walked = JvmTest::walk(input);
  EXPECT_TRUE(walked.findings.empty()) << jvm_test::explain(walked);
}

TEST_F(AsgstTest, SignalHandlersStandAboveWhatTheyInterrupted) {
  start({ScenarioId::c1, ScenarioId::native_method});
  for (const ScenarioId scenario : {ScenarioId::c1, ScenarioId::native_method}) {
    scenario == ScenarioId::c1 ? halt_in_java(scenario) : halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    const Traced below = walk(scenario, ASGST_INCLUDE_C_FRAMES);
    ASSERT_GT(below.trace.num_frames, 0) << below.why();
    ucontext_t in_handler;
    at_end_of_handler(victim(scenario).slot->context, &in_handler);
    const Traced handler = walk_context(&in_handler, ASGST_INCLUDE_C_FRAMES);
    EXPECT_EQ(handler.trace.num_frames, below.trace.num_frames + 1)
        << name_of(scenario) << ": " << handler.why();
    ASSERT_FALSE(handler.frames.empty());
    EXPECT_EQ(handler.frames.front().type, ASGST_FRAME_CPP);
    EXPECT_EQ(handler.methods(), below.methods());
    EXPECT_EQ(walk_context(&in_handler, 0).methods(), below.methods());
  }
}

// 0 where no thread has the name, as the kernel cuts it.
jlong tid_of(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    if (found == name) return std::stoll(task.path().filename());
  }
  return 0;
}

TEST_F(AsgstTest, DuringACollectionNothingIsWalkedUnlessAsked) {
  start({ScenarioId::parked, ScenarioId::vm_thread});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  // The collector's own flag, since the halted world collects nothing.
  const VmStructs& structs = session().jvm().structs();
  auto** const heap_of_vm =
      static_cast<char**>(structs.static_address("Universe", "_collectedHeap"));
  const auto walk_without_heap = [&] {
    const Poke no_heap(heap_of_vm, static_cast<char*>(nullptr));
    return walk(ScenarioId::parked, 0);
  };
  // As while the VM starts.
  const Traced without_heap = walk_without_heap();
  const Poke active(*heap_of_vm + structs.required_offset("CollectedHeap", "_is_stw_gc_active"),
                    true);
  const Traced refused = walk(ScenarioId::parked, 0);
  const Traced masked = walk(ScenarioId::parked, 0, ASGST_JAVA_TRACE);
  const Traced walked = walk(ScenarioId::parked, ASGST_WALK_DURING_UNSAFE_STATES);
  const Traced collecting = walk(ScenarioId::vm_thread, ASGST_INCLUDE_NON_JAVA_THREADS);
  const Traced beside =
      walk_thread(tid_of("VM Periodic Tas"), victim(ScenarioId::vm_thread).slot->context,
                  ASGST_INCLUDE_NON_JAVA_THREADS);
  EXPECT_EQ(refused.trace.num_frames, ASGST_GC_ACTIVE);
  EXPECT_EQ(refused.trace.kind, ASGST_GC_TRACE);
  EXPECT_EQ(masked.trace.num_frames, ASGST_WRONG_KIND);
  EXPECT_GT(walked.trace.num_frames, 0) << walked.why();
  EXPECT_EQ(collecting.trace.kind, ASGST_GC_TRACE);
  EXPECT_EQ(beside.trace.kind, ASGST_CPP_TRACE);
  EXPECT_EQ(without_heap.trace.num_frames, ASGST_GC_ACTIVE);
}

// Runs at a safepoint, on the VM thread.
struct AtSafepoint {
  std::function<void()> walk;
  bool done = false;
};
jint JNICALL on_first_object(jlong, jlong, jlong*, jint, void* data) {
  auto* const at = static_cast<AtSafepoint*>(data);
  if (!at->done) at->walk();
  at->done = true;
  return JVMTI_VISIT_ABORT;
}

TEST_F(AsgstTest, AtASafepointNothingIsWalkedUnlessAsked) {
  start({ScenarioId::parked});
  jvmtiEnv* jvmti = nullptr;
  ASSERT_EQ(session().jvm().vm()->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11),
            JNI_OK);
  jvmtiCapabilities wanted{};
  wanted.can_tag_objects = 1;
  ASSERT_EQ(jvmti->AddCapabilities(&wanted), JVMTI_ERROR_NONE);
  const jlong tid = gettid();
  Traced refused, walked;
  AtSafepoint at{[&] {
    refused = walk_thread(tid, nullptr, 0);
    walked = walk_thread(tid, nullptr, ASGST_WALK_DURING_UNSAFE_STATES);
  }};
  jvmtiHeapCallbacks callbacks{};
  callbacks.heap_iteration_callback = &on_first_object;
  ASSERT_EQ(jvmti->IterateThroughHeap(0, nullptr, &callbacks, &at), JVMTI_ERROR_NONE);
  ASSERT_TRUE(at.done);
  EXPECT_EQ(refused.trace.num_frames, ASGST_UNSAFE_STATE);
  // This thread has no Java frame; the walk took place.
  EXPECT_EQ(walked.trace.num_frames, ASGST_NO_JAVA_FRAME);
}

TEST_F(AsgstTest, WithoutClassLoadEventsThereAreNoMethodIds) {
  start({ScenarioId::parked});
  jvmtiEnv* const jvmti = session().jvm().jvmti();
  ASSERT_EQ(jvmti->SetEventNotificationMode(JVMTI_DISABLE, JVMTI_EVENT_CLASS_LOAD, nullptr),
            JVMTI_ERROR_NONE);
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(ScenarioId::parked, 0).trace.num_frames, ASGST_NO_CLASS_LOAD);
}

}  // namespace
}  // namespace framestorm
