// Where a virtual thread's frames end and its carrier's begin.
#include <unistd.h>

#include <jfrwalk.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <thread>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"
#include "harness/input/thread_state.h"

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using iterator_test::same;

class ContinuationTest : public IteratorTest {
 protected:
  struct Walked {
    std::vector<ASGST_Frame> frames;
    int end = 1;
    ASGST_ContinuationCounts counted = {};  // by this walk
  };
  Walked walk(int options = 0) {
    const auto get = reinterpret_cast<decltype(&ASGST_GetContinuationCounts)>(
        session().jvm().symbol("ASGST_GetContinuationCounts"));
    EXPECT_NE(get, nullptr);
    ASGST_ContinuationCounts before, after;
    get(&before);
    Walked walked;
    run(
        [&](ASGST_Iterator* iterator) {
          walked.frames = rest(iterator);
          walked.end = state_(iterator);
        },
        options);
    get(&after);
    walked.counted = {after.barriers - before.barriers, after.entries - before.entries,
                      after.entries_missing - before.entries_missing,
                      after.speculative - before.speculative};
    return walked;
  }
  static size_t entry_of(const std::vector<ASGST_Frame>& frames) {
    return static_cast<size_t>(std::ranges::find_if(frames, &ContinuationTest::enters) -
                               frames.begin());
  }
  static bool enters(const ASGST_Frame& frame) {
    return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
  }
  // The boundary is one frame with the method's name; asked to, the walk ends with it.
  void expect_boundary(const Walked& walked, uint8_t type, int end) {
    const size_t entry = entry_of(walked.frames);
    ASSERT_LT(entry, walked.frames.size()) << "no frame says that the continuation begins";
    EXPECT_EQ(std::ranges::count_if(walked.frames, &ContinuationTest::enters), 1);
    EXPECT_EQ(walked.frames[entry].type, type);
    EXPECT_EQ(method_of(walked.frames[entry]), "jdk/internal/vm/Continuation.enterSpecial");
    EXPECT_EQ(method_of(walked.frames.back()), "java/util/concurrent/ForkJoinWorkerThread.run");
    EXPECT_EQ(walked.end, end);
    const Walked own = walk(ASGST_END_AT_CONTINUATION);
    EXPECT_EQ(own.end, end);
    ASSERT_EQ(own.frames.size(), entry + 1);
    EXPECT_TRUE(same(own.frames, {walked.frames.begin(),
                                  walked.frames.begin() + static_cast<ptrdiff_t>(entry) + 1}));
    // Started in the carrier, it knows of no continuation.
    int carriers_end = 1;
    run_from(walked.frames[entry + 1], [&](ASGST_Iterator* iterator) {
      EXPECT_EQ(rest(iterator).size(), walked.frames.size() - entry - 1);
      carriers_end = state_(iterator);
    });
    EXPECT_EQ(carriers_end, ASGST_NO_FRAME);
  }
};

TEST_F(ContinuationTest, AllFramesOfAThreadThatNeverYieldedAreThere) {
  begin(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk();
  expect_boundary(walked, ASGST_FRAME_CONTINUATION, ASGST_NO_FRAME);
  EXPECT_EQ(walked.counted.barriers, 0);
  EXPECT_EQ(walked.counted.entries, 1);
  EXPECT_EQ(walked.counted.entries_missing, 0);
  EXPECT_EQ(walked.counted.speculative, 0);
}

TEST_F(ContinuationTest, FrozenFramesAreSaidToBeMissing) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk();
  expect_boundary(walked, ASGST_FRAME_CONTINUATION_FROZEN, ASGST_FRAMES_FROZEN);
  EXPECT_EQ(walked.counted.barriers, 1);
  EXPECT_EQ(walked.counted.entries, 1);
  EXPECT_EQ(walked.counted.entries_missing, 0);
}

// Freezing notes where the continuation was entered. A walk begins there without a context or outside of
// Java; in Java the frames are whole yet.
TEST_F(ContinuationTest, FramesAreLeftOutAtTheNotedEntryOnlyWhereTheyMayBeGone) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> whole = walk().frames;
  std::vector<ASGST_Frame> from_entry = whole;
  from_entry.erase(from_entry.begin(),
                   from_entry.begin() + static_cast<ptrdiff_t>(entry_of(whole)));
  ASSERT_GT(from_entry.size(), 1U);
  ASGST_Frame& entry = from_entry.front();
  ASSERT_EQ(entry.pc, read_at<void*>(session().jvm().structs().static_address("ContinuationEntry",
                                                                              "_return_pc")));
  entry.type = ASGST_FRAME_CONTINUATION;  // none that is frozen has been left out
  const ThreadLayout& layout = session().jvm().layout();
  auto* const thread = static_cast<char*>(victim(scenario_).java_thread);
  void* const context = victim(scenario_).slot->context;
  const auto frames_by = [&](void* by) {
    std::vector<ASGST_Frame> frames;
    run_context(by, [&](ASGST_Iterator* it) { frames = rest(it); });
    return frames;
  };
  const Poke sp(thread + layout.last_java_sp, entry.sp);
  const Poke fp(thread + layout.last_java_fp, entry.fp);
  const Poke pc(thread + layout.last_java_pc, entry.pc);
  const auto without_context = frames_by(nullptr);
  const auto in_java = frames_by(context);
  // Freezing is C code, in which the thread counts as in Java.
  ucontext_t in_c = *static_cast<const ucontext_t*>(context);
  set_register(&in_c, Register::pc, reinterpret_cast<uintptr_t>(&getpid));
  const auto freezing = frames_by(&in_c);
  const Poke state(thread + layout.state, uint32_t{kThreadInVm});
  const auto in_vm = frames_by(context);
  EXPECT_TRUE(same(without_context, from_entry)) << without_context.size();
  EXPECT_TRUE(same(in_java, whole)) << in_java.size();
  EXPECT_TRUE(same(freezing, from_entry)) << freezing.size();
  EXPECT_TRUE(same(in_vm, from_entry)) << in_vm.size();
}

TEST_F(ContinuationTest, ABarrierOfNoContinuationEndsTheWalkAndIsCounted) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  const Poke<void*> entered(
      static_cast<char*>(victim(scenario_).java_thread) +
          session().jvm().structs().required_offset("JavaThread", "_cont_entry"),
      nullptr);
  const Walked walked = walk();
  EXPECT_EQ(walked.end, ASGST_STOPPED_BAD_PC);
  EXPECT_EQ(entry_of(walked.frames), walked.frames.size());
  EXPECT_EQ(walked.counted.entries_missing, 1);
  EXPECT_EQ(walked.counted.entries, 0);
}

// Then there is no barrier, nor an address that one could be taken for.
TEST_F(ContinuationTest, WithoutContinuationsNoReturnAddressIsABarrier) {
  begin(ScenarioId::interpreted_recursion,
        {"-XX:+UnlockExperimentalVMOptions", "-XX:-VMContinuations"});
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> frames = all();
  const Poke<void*> return_address(static_cast<void**>(frames[1].fp) + 1, nullptr);
  const Walked walked = walk();
  EXPECT_EQ(walked.frames.size(), 2U);
  EXPECT_EQ(walked.end, ASGST_STOPPED_BAD_PC);
  EXPECT_EQ(walked.counted.barriers, 0);
  EXPECT_EQ(walked.counted.entries_missing, 0);
}

// Which frames are in a continuation is told by where it was entered, as the thread has noted it.
TEST_F(ContinuationTest, JfrsTraceOfAnInterpretedFrameEndsWithItsContinuation) {
  begin(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> frames = all();
  const auto sampled = std::ranges::find(frames, 0, &ASGST_Frame::comp_level);
  ASSERT_NE(sampled, frames.end());
  const auto record = reinterpret_cast<decltype(&JfrWalk_RecordTrace)>(
      session().jvm().symbol("JfrWalk_RecordTrace"));
  auto* const thread = static_cast<char*>(victim(scenario_).java_thread);
  const ThreadLayout& layout = session().jvm().layout();
  const Poke state(thread + layout.state, uint32_t{kThreadInNative});
  const Poke sp(thread + layout.last_java_sp, sampled->sp);
  const Poke fp(thread + layout.last_java_fp, sampled->fp);
  const Poke pc(thread + layout.last_java_pc, sampled->pc);
  void* const entered =
      thread + session().jvm().structs().required_offset("JavaThread", "_cont_entry");
  const auto trace = [&] {
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(), thread);
    std::array<JfrWalk_Frame, 128> recorded = {};
    const jint count = record(victim(scenario_).slot->context, 0, recorded.data(), 128);
    std::vector<std::string> names;
    for (const JfrWalk_Frame& frame :
         std::span(recorded.data(), static_cast<size_t>(std::max(count, 0)))) {
      const MethodInfo* const method = session().jvm().methods().find(frame.method_id);
      names.push_back(method == nullptr ? "?" : method->name);
    }
    return names;
  };
  const auto whole = trace();
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(whole.front(), "framestorm/VirtualFresh.recurse");
  EXPECT_EQ(whole.back(), "jdk/internal/vm/Continuation.enterSpecial");
  using Entry = std::array<void*, 12>;
  {
    // Between the frame and its caller.
    char* const place = static_cast<char*>(sampled->fp) - 48;
    const Poke parent(place + 8, static_cast<void*>(nullptr));
    const Poke<void*> entry(entered, place);
    EXPECT_EQ(trace().size(), 1U);
  }
  {
    // Below the frame, where nothing of the thread's is.
    auto* const place = reinterpret_cast<void*>(victim(scenario_).sp - sizeof(Entry));
    const Poke copy(place, **static_cast<Entry**>(entered));
    const Poke entry(entered, place);
    const auto names = trace();
    ASSERT_GT(names.size(), whole.size());
    EXPECT_EQ(names.back(), "java/util/concurrent/ForkJoinWorkerThread.run");
  }
}

// Its innermost frame is a stub's, which a compiled one has called.
TEST_F(ContinuationTest, FramesThatAreFrozenWhereTheirThreadWaitsForAMonitorCanBeWalked) {
  start({ScenarioId::interpreted_recursion}, {},
        {"-Xcomp", "-XX:TieredStopAtLevel=1",
         "-XX:CompileCommand=compileonly,java.util.TimerThread::mainLoop"});
  ASSERT_FALSE(HasFatalFailure());
  JNIEnv* const env = session().jvm().env();
  const jclass timers = env->FindClass("java/util/Timer");
  const jobject timer =
      env->NewObject(timers, env->GetMethodID(timers, "<init>", "(Z)V"), jboolean{JNI_TRUE});
  const auto field = [&](const char* name, const char* type) {
    return env->GetObjectField(timer, env->GetFieldID(timers, name, type));
  };
  constexpr std::chrono::milliseconds kGlance{1};
  // Once it waits, what it runs is compiled.
  const jobject runnable = field("thread", "Ljava/util/TimerThread;");
  jvmtiEnv* const jvmti = session().jvm().jvmti();
  jint timers_state = 0;
  while ((timers_state & JVMTI_THREAD_STATE_WAITING) == 0) {
    ASSERT_EQ(jvmti->GetThreadState(runnable, &timers_state), JVMTI_ERROR_NONE);
    std::this_thread::sleep_for(kGlance);
  }
  const jobject queue = field("queue", "Ljava/util/TaskQueue;");
  ASSERT_EQ(env->MonitorEnter(queue), JNI_OK);
  const jclass threads = env->FindClass("java/lang/Thread");
  const jobject thread = env->CallStaticObjectMethod(
      threads,
      env->GetStaticMethodID(threads, "startVirtualThread",
                             "(Ljava/lang/Runnable;)Ljava/lang/Thread;"),
      runnable);
  ASSERT_NE(thread, nullptr);
  const jclass virtual_threads = env->GetObjectClass(thread);
  const jfieldID state = env->GetFieldID(virtual_threads, "state", "I");
  const jint blocked = env->GetStaticIntField(
      virtual_threads, env->GetStaticFieldID(virtual_threads, "BLOCKED", "I"));
  while (env->GetIntField(thread, state) != blocked) std::this_thread::sleep_for(kGlance);
  ASSERT_EQ(jvmti->ForceGarbageCollection(), JVMTI_ERROR_NONE);
  std::array<jvmtiFrameInfo, 8> frames;
  jint count = 0;
  ASSERT_EQ(
      jvmti->GetStackTrace(thread, 0, static_cast<jint>(frames.size()), frames.data(), &count),
      JVMTI_ERROR_NONE);
  EXPECT_EQ(env->MonitorExit(queue), JNI_OK);
  session().jvm().methods().absorb();
  const auto name_of_frame = [&](jint i) {
    return session().jvm().methods().find(frames.at(static_cast<size_t>(i)).method)->name;
  };
  ASSERT_GT(count, 0);
  EXPECT_EQ(name_of_frame(0), "java/util/TimerThread.mainLoop");
  EXPECT_EQ(name_of_frame(count - 1), "jdk/internal/vm/Continuation.enter");
}

}  // namespace
}  // namespace framestorm
