// At a thread's poll the frames of its continuation that are in the heap are given, too.
#include <jni.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "harness/base/poke.h"
#include "harness/executor/jvm_fixture.h"
#include "profile2.h"

namespace framestorm {
namespace {

class FrozenFramesTest : public jvm_test::JvmTest {
 protected:
  using Handler = std::function<void(ASGST_Iterator*)>;

  // This thread returns from a native method, and polls. Other ones have entered continuations.
  void at_poll(const Handler& handler) {
    start({ScenarioId::virtual_fresh});
    ASSERT_FALSE(HasFatalFailure());
    find(&next_, "ASGST_NextFrame");
    find(&rewind_, "ASGST_RewindIterator");
    find(&enqueue, "ASGST_Enqueue");
    decltype(&ASGST_RegisterQueue) make_queue = nullptr;
    find(&make_queue, "ASGST_RegisterQueue");
    decltype(&ASGST_SetOnQueueProcessingStart) on_start = nullptr;
    find(&on_start, "ASGST_SetOnQueueProcessingStart");
    ASSERT_FALSE(HasFatalFailure());
    queue = make_queue(nullptr, 1, 0, [](ASGST_Iterator*, void*, void*) {}, nullptr);
    ASSERT_NE(queue, nullptr);
    on_start(
        queue, 0, true,
        [](ASGST_Queue*, ASGST_Iterator* it, void* handler) {
          (*static_cast<const Handler*>(handler))(it);
        },
        const_cast<Handler*>(&handler));
    JNIEnv* const env = session().jvm().env();
    const jclass harness = env->FindClass("framestorm/Harness");
    JNINativeMethod native = {const_cast<char*>("spinInNative"), const_cast<char*>("()V"),
                              reinterpret_cast<void*>(+[](JNIEnv*, jclass) {
                                EXPECT_EQ(enqueue(queue, nullptr, nullptr), ASGST_JAVA_TRACE);
                              })};
    ASSERT_EQ(env->RegisterNatives(harness, &native, 1), JNI_OK);
    env->CallStaticVoidMethod(harness, env->GetStaticMethodID(harness, "spinInNative", "()V"));
  }

  decltype(&ASGST_NextFrame) next_ = nullptr;
  decltype(&ASGST_RewindIterator) rewind_ = nullptr;

 private:
  template <typename T>
  void find(T* function, const char* name) {
    *function = reinterpret_cast<T>(session().jvm().symbol(name));
    ASSERT_NE(*function, nullptr) << name;
  }

  static inline decltype(&ASGST_Enqueue) enqueue = nullptr;
  static inline ASGST_Queue* queue = nullptr;
};

TEST_F(FrozenFramesTest, WhereThereIsNoContinuationItsEntryIsNext) {
  const std::array<void*, 32> entry = {};
  std::array<ASGST_Frame, 2> frames = {};
  at_poll([&](ASGST_Iterator* it) {
    ASSERT_EQ(next_(it, frames.data()), 1);
    const auto barrier = entry_of(CodeKind::stub, "cont_returnBarrier");
    const Poke returns_to(static_cast<uintptr_t*>(frames[0].fp) + 1, barrier);
    const Poke entered(static_cast<char*>(session().jvm().identity().current()) +
                           session().jvm().structs().required_offset("JavaThread", "_cont_entry"),
                       static_cast<const void*>(entry.data()));
    rewind_(it);
    constexpr unsigned kSeconds = 10;
    alarm(kSeconds);  // ends a walk that does not
    next_(it, &frames[0]);
    EXPECT_EQ(next_(it, &frames[1]), 1);
    alarm(0);
  });
  EXPECT_EQ(frames[1].type, ASGST_FRAME_CONTINUATION_FROZEN);
  EXPECT_EQ(frames[1].sp, entry.data());
}

}  // namespace
}  // namespace framestorm
