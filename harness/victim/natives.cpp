#include "harness/victim/natives.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <memory>
#include <string>
#include <thread>

#include "harness/victim/no_return.h"
#include "harness/victim/odd_tables.h"
#include "harness/victim/untabled.h"
#include "harness/victim/world.h"

namespace framestorm::natives {
namespace {

struct Entry {
  std::atomic<int> tid{0};
  std::atomic<jobject> thread{nullptr};
  std::atomic<int64_t> java_id{0};
  std::atomic<uintptr_t> stack_base{0};
  std::atomic<uintptr_t> stack_end{0};
  std::atomic<uint32_t> permits{0};  // futex word of churnPermit
  std::atomic<uint32_t> paused{0};   // futex word of spin()
  std::atomic<bool> spinning{false};
};

std::array<Entry, static_cast<size_t>(ScenarioId::count)> entries;
std::atomic<bool> stopping{false};

enum class Armed : uint8_t { none, start, end };
std::atomic<Armed> armed{Armed::none};
std::atomic<uint64_t> armed_steps{0};
std::atomic<uintptr_t> armed_pc{0};
std::atomic<int> stepping_tid{0};

Entry& entry_of(ScenarioId scenario) { return entries[static_cast<size_t>(scenario)]; }

Entry* entry_of_current_thread() {
  const int tid = gettid();
  for (Entry& entry : entries) {
    if (entry.tid.load() == tid) return &entry;
  }
  return nullptr;
}

// A few frames of C below the Java ones; volatile work keeps them apart.
[[gnu::noinline]] uint64_t spin_leaf(volatile uint64_t* counter) {
  for (int i = 0; i < 1000; ++i) *counter = *counter * 6364136223846793005U + 1;
  return *counter;
}

// Again and again, but while the victim is paused.
template <typename Work>
[[gnu::always_inline]] inline void work_until_stopped(Work work) {
  Entry* entry = entry_of_current_thread();
  if (entry != nullptr) entry->spinning.store(true);
  while (!stopping.load(std::memory_order_relaxed)) {
    if (entry != nullptr && entry->paused.load(std::memory_order_relaxed) != 0) {
      syscall(SYS_futex, &entry->paused, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
    } else {
      work();
    }
  }
  if (entry != nullptr) entry->spinning.store(false);
}

[[gnu::noinline]] void spin() {
  volatile uint64_t counter = 1;
  work_until_stopped([&] { spin_leaf(&counter); });
}

struct NativeStart {
  static constexpr uint32_t kStarting = 0;
  static constexpr uint32_t kSpinning = 1;
  static constexpr uint32_t kFailed = 2;
  NativeStart(ScenarioId of, JavaVM* attach_to) : scenario(of), vm(attach_to) {}
  ScenarioId scenario;
  JavaVM* vm;
  std::atomic<uint32_t> state{kStarting};
};

void register_native(ScenarioId scenario) {
  Entry& entry = entry_of(scenario);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* address = nullptr;
    size_t size = 0;
    pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    entry.stack_end.store(reinterpret_cast<uintptr_t>(address));
    entry.stack_base.store(reinterpret_cast<uintptr_t>(address) + size);
  }
  entry.tid.store(gettid());
}

void* run_native(void* argument) {
  auto* start = static_cast<NativeStart*>(argument);
  JavaVM* const vm = start->vm;
  if (vm != nullptr) {
    void* env = nullptr;
    JavaVMAttachArgs arguments = {JNI_VERSION_10, const_cast<char*>("native-attached"), nullptr};
    if (vm->AttachCurrentThreadAsDaemon(&env, &arguments) != JNI_OK) {
      start->state.store(NativeStart::kFailed);
      return nullptr;
    }
  }
  register_native(start->scenario);
  start->state.store(NativeStart::kSpinning);
  spin();
  if (vm != nullptr) vm->DetachCurrentThread();
  return nullptr;
}

void step_when_armed(Armed which) {
  Armed expected = which;
  if (!armed.compare_exchange_strong(expected, Armed::none)) return;
  stepping_tid.store(gettid());
  World::get().step_self({.steps = armed_steps.load(), .pc = armed_pc.load()});
}

// Null, and an exception is pending, where there is none of this name.
Entry* entry_named(JNIEnv* env, jstring name) {
  const char* chars = env->GetStringUTFChars(name, nullptr);
  ScenarioId scenario = ScenarioId::count;
  const bool known = parse_name(chars, &scenario);
  env->ReleaseStringUTFChars(name, chars);
  if (known) return &entry_of(scenario);
  env->ThrowNew(env->FindClass("java/lang/IllegalArgumentException"), "unknown scenario");
  return nullptr;
}

void JNICALL enter(JNIEnv* env, jclass, jstring name) {
  Entry* const named = entry_named(env, name);
  if (named == nullptr) return;
  Entry& entry = *named;
  jclass thread_class = env->FindClass("java/lang/Thread");
  const jmethodID current =
      env->GetStaticMethodID(thread_class, "currentThread", "()Ljava/lang/Thread;");
  const jobject thread = env->CallStaticObjectMethod(thread_class, current);
  // A remounted virtual thread enters again: same thread, maybe another carrier. Its reference may be in
  // use.
  if (jobject old = entry.thread.load(); old == nullptr || !env->IsSameObject(old, thread)) {
    entry.java_id.store(
        env->CallLongMethod(thread, env->GetMethodID(thread_class, "getId", "()J")));
    entry.thread.store(env->NewGlobalRef(thread));
    if (old != nullptr) env->DeleteGlobalRef(old);
  }
  entry.tid.store(gettid());
}

void JNICALL leave(JNIEnv*, jclass) {
  if (Entry* entry = entry_of_current_thread()) entry->tid.store(0);
}

jboolean JNICALL is_named_spinning(JNIEnv* env, jclass, jstring name) {
  const Entry* const entry = entry_named(env, name);
  return entry != nullptr && entry->spinning.load() ? JNI_TRUE : JNI_FALSE;
}

void JNICALL spin_in_native(JNIEnv*, jclass) { spin(); }

void JNICALL spin_below_untabled(JNIEnv*, jclass) {
  // No tail calls: each has a frame.
  call_untabled([] {
    call_oddly_tabled(&spin);
    asm volatile("" ::: "memory");
  });
  asm volatile("" ::: "memory");
}

void JNICALL spin_below_no_return(JNIEnv*, jclass) {
  constexpr uint64_t kRounds = 1 << 18;
  work_until_stopped([] { count_below_no_return(kRounds); });
}

// About as long as what its caller does beside it.
void JNICALL count_in_native(JNIEnv*, jclass) {
  volatile int counter = 0;
  while (counter < 200) counter = counter + 1;
}

void JNICALL call_back(JNIEnv* env, jclass, jobject runnable) {
  const jmethodID run = env->GetMethodID(env->FindClass("java/lang/Runnable"), "run", "()V");
  env->CallVoidMethod(runnable, run);
}

jlong JNICALL spin_address(JNIEnv*, jclass) { return reinterpret_cast<jlong>(&spin); }

void JNICALL open(JNIEnv* env, jclass, jobject module, jstring name, jobject to) {
  const char* chars = env->GetStringUTFChars(name, nullptr);
  const jvmtiError error = Jvm::get().jvmti()->AddModuleOpens(module, chars, to);
  env->ReleaseStringUTFChars(name, chars);
  if (error != JVMTI_ERROR_NONE) {
    env->ThrowNew(env->FindClass("java/lang/IllegalArgumentException"),
                  ("JVMTI error " + std::to_string(error)).c_str());
  }
}

jboolean JNICALL is_at_page_end(JNIEnv* env, jclass, jstring string) {
  const jfieldID value = env->GetFieldID(env->GetObjectClass(string), "value", "[B");
  if (value == nullptr) return JNI_FALSE;  // it has thrown
  auto* const array = static_cast<jarray>(env->GetObjectField(string, value));
  void* const bytes = env->GetPrimitiveArrayCritical(array, nullptr);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  constexpr uintptr_t kRead = 16;  // C2_MacroAssembler::string_indexof
  const bool is_at_end = reinterpret_cast<uintptr_t>(bytes) % page > page - kRead;
  env->ReleasePrimitiveArrayCritical(array, bytes, JNI_ABORT);
  return is_at_end ? JNI_TRUE : JNI_FALSE;
}

void JNICALL churn_permit(JNIEnv*, jclass) {
  Entry* entry = entry_of_current_thread();
  if (entry == nullptr) return;
  while (!stopping.load()) {
    uint32_t permits = entry->permits.load();
    if (permits > 0) {
      entry->permits.store(permits - 1);
      return;
    }
    syscall(SYS_futex, &entry->permits, FUTEX_WAIT_PRIVATE, permits, nullptr, nullptr, 0);
  }
}

std::atomic<void (*)(JNIEnv*)> on_begin_stepping{nullptr};
std::atomic<void (*)()> on_end_stepping{nullptr};

void JNICALL glance(JNIEnv*, jclass) { std::this_thread::sleep_for(kGlance); }

void JNICALL begin_stepping(JNIEnv* env, jclass) {
  if (const auto begin = on_begin_stepping.load(std::memory_order_acquire)) begin(env);
}

void JNICALL end_stepping(JNIEnv*, jclass) {
  if (const auto end = on_end_stepping.load(std::memory_order_acquire)) end();
}

}  // namespace

void set_stepping(void (*begin)(JNIEnv*), void (*end)()) {
  on_begin_stepping.store(begin);
  on_end_stepping.store(end);
}

void bind(const Jvm& jvm) {
  JNIEnv* env = jvm.env();
  jclass harness = env->FindClass("framestorm/Harness");
  jvm.check_exception("the victims' classes are not on the class path (--classes)");
  auto method = [](const char* name, const char* signature, auto* function) {
    return JNINativeMethod{const_cast<char*>(name), const_cast<char*>(signature),
                           reinterpret_cast<void*>(function)};
  };
  const std::array methods = {
      method("enter", "(Ljava/lang/String;)V", &enter),
      method("leave", "()V", &leave),
      method("isSpinning", "(Ljava/lang/String;)Z", &is_named_spinning),
      method("spinInNative", "()V", &spin_in_native),
      method("spinBelowUntabled", "()V", &spin_below_untabled),
      method("spinBelowNoReturn", "()V", &spin_below_no_return),
      method("countInNative", "()V", &count_in_native),
      method("callBack", "(Ljava/lang/Runnable;)V", &call_back),
      method("spinAddress", "()J", &spin_address),
      method("churnPermit", "()V", &churn_permit),
      method("open", "(Ljava/lang/Module;Ljava/lang/String;Ljava/lang/Module;)V", &open),
      method("isAtPageEnd", "(Ljava/lang/String;)Z", &is_at_page_end),
      method("beginStepping", "()V", &begin_stepping),
      method("endStepping", "()V", &end_stepping),
      method("glance", "()V", &glance),
  };
  env->RegisterNatives(harness, methods.data(), static_cast<jint>(methods.size()));
  jvm.check_exception("binding framestorm.Harness");
  World::set_start_action([] { step_when_armed(Armed::start); });
}

Registration registration(ScenarioId scenario) {
  const Entry& entry = entry_of(scenario);
  return {entry.tid.load(), entry.thread.load(), entry.java_id.load(), entry.stack_base.load(),
          entry.stack_end.load()};
}

bool is_spinning(ScenarioId scenario) { return entry_of(scenario).spinning.load(); }

bool start_thread(ScenarioId scenario, JavaVM* vm) {
  auto start = std::make_unique<NativeStart>(scenario, vm);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, size_t{1} << 20);
  pthread_t thread = {};
  const int error = pthread_create(&thread, &attributes, &run_native, start.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) return false;
  // The thread reads it until it says how it went.
  uint32_t state = 0;
  while ((state = start->state.load()) == NativeStart::kStarting) {
    std::this_thread::sleep_for(kGlance);
  }
  return state == NativeStart::kSpinning;
}

void pause(ScenarioId scenario, bool paused) {
  Entry& entry = entry_of(scenario);
  entry.paused.store(paused ? 1 : 0);
  if (!paused) syscall(SYS_futex, &entry.paused, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void arm_start(uint64_t steps, uintptr_t pc) {
  stepping_tid.store(0);
  armed_pc.store(pc);
  armed_steps.store(steps);
  armed.store(Armed::start);
}

void arm_end(uint64_t steps) {
  stepping_tid.store(0);
  armed_pc.store(0);
  armed_steps.store(steps);
  armed.store(Armed::end);
}

void permit(ScenarioId churn) {
  Entry& entry = entry_of(churn);
  entry.permits.fetch_add(1);
  syscall(SYS_futex, &entry.permits, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

int armed_tid() { return stepping_tid.load(); }

void disarm() { armed.store(Armed::none); }

void on_thread_end() { step_when_armed(Armed::end); }

void stop() {
  stopping.store(true);
  for (Entry& entry : entries) {
    syscall(SYS_futex, &entry.permits, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
    entry.paused.store(0);
    syscall(SYS_futex, &entry.paused, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
}

void go_on() { stopping.store(false); }

}  // namespace framestorm::natives
