// Traces that JFR makes of a thread for the thread's own events.
#include <algorithm>
#include <array>

#include "harness/base/poke.h"
#include "harness/hotspot/walkers_test/iterator_fixture.h"

namespace framestorm {
namespace {

constexpr int64_t kNoFilter = -1;

class JfrEventsTest : public iterator_test::IteratorTest {
 protected:
  void begin(ScenarioId scenario) {
    IteratorTest::begin(scenario, {}, [&] {
      jvm_ = env()->FindClass("jdk/jfr/internal/JVM");
      ASSERT_NE(jvm_, nullptr);
      ASSERT_TRUE(env()->CallStaticBooleanMethod(
          jvm_, env()->GetStaticMethodID(jvm_, "createJFR", "(Z)Z"), JNI_FALSE));
      record_ = reinterpret_cast<decltype(record_)>(
          entry_of(CodeKind::function, "_ZN23JfrStackTraceRepository6recordEP6Threadil"));
    });
  }
  JNIEnv* env() { return session().jvm().env(); }
  // Of the control thread, from Java's native method on.
  jlong traced(jint skip, jlong filter) {
    return env()->CallStaticLongMethod(
        jvm_, env()->GetStaticMethodID(jvm_, "getStackTraceId", "(IJ)J"), skip, filter);
  }
  // What is left out of traces with it.
  jlong filter_of(const char* class_name, const char* method) {
    const jclass string = env()->FindClass("java/lang/String");
    return env()->CallStaticLongMethod(
        jvm_,
        env()->GetStaticMethodID(jvm_, "registerStackFilter",
                                 "([Ljava/lang/String;[Ljava/lang/String;)J"),
        env()->NewObjectArray(1, string, env()->NewStringUTF(class_name)),
        env()->NewObjectArray(1, string, env()->NewStringUTF(method)));
  }

  jclass jvm_ = nullptr;
  int64_t (*record_)(void* thread, int skip, int64_t filter) = nullptr;
};

TEST_F(JfrEventsTest, AFilterLeavesOutItsMethods) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  session().release_world();
  const jlong first = filter_of("jdk/jfr/internal/JVM", "getStackTraceId");
  const jlong other = filter_of("jdk/jfr/internal/JVM", "registerStackFilter");
  EXPECT_EQ(first, 0);
  EXPECT_NE(traced(0, kNoFilter), 0);
  EXPECT_EQ(traced(0, other), traced(0, kNoFilter));
  EXPECT_EQ(traced(0, first), 0);
}

TEST_F(JfrEventsTest, WithoutFramesThereIsNoTrace) {
  begin(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  session().release_world();
  EXPECT_NE(traced(0, kNoFilter), 0);
  EXPECT_EQ(traced(2, kNoFilter), 0);  // it has one
  EXPECT_EQ(
      record_(reinterpret_cast<char*>(env()) - session().jvm().layout().jni_env, 0, kNoFilter), 0);
}

// Whether the thread runs a virtual one, and whether the innermost frame is one of that, decides.
TEST_F(JfrEventsTest, TracesOfAVirtualThreadEndBeforeItsCarriersFrames) {
  begin(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  session().release_world();
  const jlong without_carrier = filter_of("java/util/concurrent/ForkJoinWorkerThread", "run");
  halt_in_java(scenario_);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<ASGST_Frame> frames = all();
  const auto inner = std::ranges::find(frames, 0, &ASGST_Frame::comp_level);
  const auto entry = std::ranges::find(frames, ASGST_FRAME_CONTINUATION, &ASGST_Frame::type);
  ASSERT_TRUE(inner != frames.end() && entry != frames.end());
  auto* const thread = static_cast<char*>(victim(scenario_).java_thread);
  const VmStructs& structs = session().jvm().structs();
  const ThreadLayout& layout = session().jvm().layout();
  void* const entered = thread + structs.required_offset("JavaThread", "_cont_entry");
  const auto comes_to_carrier = [&](const ASGST_Frame& from) {
    const ThreadIdentity::Scoped as_victim(session().jvm().identity(), thread);
    const Poke sp(thread + layout.last_java_sp, from.sp);
    const Poke fp(thread + layout.last_java_fp, from.fp);
    const Poke pc(thread + layout.last_java_pc, from.pc);
    const int64_t whole = record_(thread, 0, kNoFilter);
    EXPECT_NE(whole, 0);
    return record_(thread, 0, without_carrier) != whole;
  };
  EXPECT_FALSE(comes_to_carrier(*inner));
  EXPECT_FALSE(comes_to_carrier(*entry)) << "as where a wait is over and its frames are frozen";
  EXPECT_TRUE(comes_to_carrier(*(entry + 1)));
  using Entry = std::array<void*, 12>;
  {
    // Below the frame, where nothing of the thread's is.
    auto* const place = reinterpret_cast<void*>(victim(scenario_).sp - sizeof(Entry));
    const Poke copy(place, **static_cast<Entry**>(entered));
    const Poke elsewhere(entered, place);
    EXPECT_TRUE(comes_to_carrier(*inner));
  }
  const auto set_current = reinterpret_cast<void (*)(void* thread, void* object)>(entry_of(
      CodeKind::function, "_ZN14JfrThreadLocal21on_set_current_threadEP10JavaThreadP7oopDesc"));
  const auto object = [&](const char* field) {
    return *read_at<void**>(thread, structs.required_offset("JavaThread", field));
  };
  set_current(thread, object("_threadObj"));
  EXPECT_TRUE(comes_to_carrier(*inner));
  set_current(thread, object("_vthread"));
  EXPECT_FALSE(comes_to_carrier(*inner));
}

}  // namespace
}  // namespace framestorm
