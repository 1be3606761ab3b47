#include "stress/agent/truth.h"

#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>

#include "harness/base/error.h"
#include "stress/agent/samples_blocked.h"

namespace framestorm::stress {
namespace {

std::string text_of(JNIEnv* env, jstring string) {
  const char* const bytes = string == nullptr ? nullptr : env->GetStringUTFChars(string, nullptr);
  std::string copy = bytes == nullptr ? "" : bytes;
  if (bytes != nullptr) env->ReleaseStringUTFChars(string, bytes);
  return copy;
}

// JVMTI's extension events have C variadic callbacks.
void JNICALL on_mount(jvmtiEnv*, JNIEnv* env, jthread thread, ...) {
  Truth::get().mounted(env, thread);
}
void JNICALL on_unmount(jvmtiEnv*, JNIEnv*, jthread, ...) { Truth::get().unmounted(); }

}  // namespace

Truth& Truth::get() {
  static Truth* const truth = new Truth;
  return *truth;
}

void Truth::begin(JNIEnv* env, jvmtiEnv* jvmti) {
  jclass thread = env->FindClass("java/lang/Thread");
  number_ = thread == nullptr ? nullptr : env->GetFieldID(thread, "tid", "J");
  if (number_ == nullptr) throw SetupError("java.lang.Thread has no tid: no shadow stacks");
  env->DeleteLocalRef(thread);
  jint count = 0;
  jvmtiExtensionEventInfo* events = nullptr;
  if (jvmti->GetExtensionEvents(&count, &events) != JVMTI_ERROR_NONE) return;
  for (jint i = 0; i < count; ++i) {
    const std::string_view id = events[i].id;
    const auto hear = [&](std::string_view name, jvmtiExtensionEvent callback) {
      if (id != name) return;
      jvmti->SetExtensionEventCallback(events[i].extension_event_index, callback);
      jvmti->SetEventNotificationMode(
          JVMTI_ENABLE, static_cast<jvmtiEvent>(events[i].extension_event_index), nullptr);
    };
    hear("com.sun.hotspot.events.VirtualThreadMount",
         reinterpret_cast<jvmtiExtensionEvent>(&on_mount));
    hear("com.sun.hotspot.events.VirtualThreadUnmount",
         reinterpret_cast<jvmtiExtensionEvent>(&on_unmount));
  }
}

void Truth::attach(Registry& threads, Check check) {
  check_ = std::move(check);
  threads_.store(&threads, std::memory_order_release);
}

template <typename Function>
void Truth::with_own_record(Function function) {
  Registry* const threads = threads_.load(std::memory_order_acquire);
  if (threads == nullptr) return;
  SampledThread* record = nullptr;
  {
    const TimerBlocked not_now;
    threads->find(gettid(), [&](SampledThread& own) { record = &own; });
  }
  // Only its own thread ends a record.
  if (record != nullptr) function(*record);
}

jint Truth::slow_enter(JNIEnv*, jlong thread, jint method) {
  // A thread that is being attached, whose object is not made yet.
  if (thread == 0) return -1;
  ShadowStack* stack = stacks_.find(thread);
  const bool is_new = stack == nullptr;
  const bool check_due = !is_new && stack->check_due.exchange(false, std::memory_order_relaxed);
  if (!is_new && !check_due) {
    stack = &stacks_.take(thread, false);
    return ShadowStacks::push(*stack, method);
  }
  jint depth = -1;
  bool pushed = false;
  with_own_record([&](SampledThread& record) {
    if (is_new) {
      stack = &stacks_.take(thread, thread != record.number);
      if (thread == record.number || record.mounted.load()) {
        record.shadow.store(stack, std::memory_order_release);
      }
    }
    depth = ShadowStacks::push(*stack, method);
    pushed = true;
    if (check_due) check_(record);
  });
  if (!pushed) depth = ShadowStacks::push(stacks_.take(thread, false), method);
  return depth;
}

void Truth::slow_exit(jlong thread, jint depth) {
  if (depth < 0) return;
  ShadowStack* const stack = stacks_.find(thread);
  if (stack == nullptr) return;
  std::atomic_ref(stack->depth).store(depth, std::memory_order_release);
  if (depth > 0 || stack->is_virtual == 0) {
    stacks_.take(thread, false);
    return;
  }
  with_own_record([](SampledThread& record) { record.shadow.store(nullptr); });
  stacks_.release(thread);
}

void Truth::mounted(JNIEnv* env, jobject virtual_thread) {
  ShadowStack* const stack = stacks_.find(number_of(env, virtual_thread));
  with_own_record([&](SampledThread& record) {
    record.carries.store(true);
    record.shadow.store(stack, std::memory_order_release);
    record.mounted.store(true);
  });
}

void Truth::unmounted() {
  with_own_record([&](SampledThread& record) {
    record.mounted.store(false);
    record.shadow.store(stacks_.find(record.number), std::memory_order_release);
  });
}

}  // namespace framestorm::stress

using framestorm::stress::text_of;
using framestorm::stress::Truth;

extern "C" {

JNIEXPORT jlong JNICALL Java_framestorm_truth_Shadow_table(JNIEnv*, jclass) {
  return static_cast<jlong>(Truth::get().stacks().table());
}

JNIEXPORT jint JNICALL Java_framestorm_truth_Shadow_slowEnter(JNIEnv* env, jclass, jlong thread,
                                                              jint method) {
  return Truth::get().slow_enter(env, thread, method);
}

JNIEXPORT void JNICALL Java_framestorm_truth_Shadow_slowExit(JNIEnv*, jclass, jlong thread,
                                                             jint depth) {
  Truth::get().slow_exit(thread, depth);
}

JNIEXPORT jint JNICALL Java_framestorm_truth_Shadow_number(JNIEnv* env, jclass, jstring owner,
                                                           jstring name, jstring descriptor) {
  return Truth::get().methods().number_of(text_of(env, owner), text_of(env, name),
                                          text_of(env, descriptor));
}

JNIEXPORT void JNICALL Java_framestorm_truth_Shadow_describe(JNIEnv* env, jclass, jint method,
                                                             jint push, jintArray indices,
                                                             jobjectArray callees) {
  std::map<int32_t, std::string> calls;
  const jsize count = env->GetArrayLength(indices);
  jint* const at = env->GetIntArrayElements(indices, nullptr);
  for (jsize i = 0; at != nullptr && i < count; ++i) {
    auto* const name = static_cast<jstring>(env->GetObjectArrayElement(callees, i));
    calls[at[i]] = text_of(env, name);
    if (name != nullptr) env->DeleteLocalRef(name);
  }
  if (at != nullptr) env->ReleaseIntArrayElements(indices, at, JNI_ABORT);
  Truth::get().methods().describe(method, push, std::move(calls));
}
}
