// A sampling profiler in one file, on the safepoint queues of profile2.h: a JVMTI agent that writes
// how often each stack was seen when the program ends, as lines for flame graphs
// ("Main.main;Main.work 17").
//
//   java -agentpath:libqueue_profiler.so=interval=1000,output=stacks.txt ...
//
// interval is in microseconds. A thread of the agent signals each Java thread in turn; the signal
// handler only notes where the thread is. The thread tells its stack itself at its next safepoint,
// where the handler may lock, allocate and ask for names. A sample that is the same as the last one
// in the queue is counted there, as those of a thread that waits are.
#include <jvmti.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

// After jni.h and jvmti.h: it is of the JDK under test, they may be of another.
#include "profile2.h"

namespace {

std::chrono::microseconds interval{1000};
std::string output = "stacks.txt";

thread_local ASGST_Queue* queue = nullptr;
std::mutex threads_mutex;
std::set<pid_t> threads;

std::mutex stacks_mutex;
std::map<std::string, size_t> stacks;
size_t lost = 0;

std::atomic<bool> running{false};
std::thread sampler;

std::string name_of(ASGST_Method method) {
  std::array<char, 256> method_name{};
  std::array<char, 256> class_name{};
  ASGST_MethodInfo info{};
  info.method_name = method_name.data();
  info.method_name_length = method_name.size();
  ASGST_ClassInfo class_info{};
  class_info.class_name = class_name.data();
  class_info.class_name_length = class_name.size();
  ASGST_GetMethodInfo(method, &info);
  ASGST_GetClassInfo(info.klass, &class_info);
  return std::string(class_name.data()) + "." + method_name.data();
}

// At a safepoint. `count`: samples that this one stands for.
void on_safepoint(ASGST_Iterator* iterator, void*, void* count) {
  std::string stack;
  ASGST_Frame frame;
  while (ASGST_NextFrame(iterator, &frame) == 1) {
    stack = name_of(frame.method) + (stack.empty() ? "" : ";") + stack;
  }
  const std::lock_guard lock(stacks_mutex);
  (stack.empty() ? lost : stacks[stack]) += reinterpret_cast<uintptr_t>(count);
}

// Async-signal-safe.
void on_signal(int, siginfo_t*, void* ucontext) {
  if (queue == nullptr) return;
  ASGST_QueueElement now;
  if (ASGST_GetEnqueuableElement(ucontext, &now) != ASGST_JAVA_TRACE) return;
  ASGST_QueueElement* const last = ASGST_GetQueueElement(queue, -1);
  if (last != nullptr && last->pc == now.pc && last->sp == now.sp && last->fp == now.fp) {
    last->arg = static_cast<char*>(last->arg) + 1;
  } else {
    ASGST_Enqueue(queue, ucontext, reinterpret_cast<void*>(1));
  }
}

void sample() {
  while (running.load()) {
    {
      const std::lock_guard lock(threads_mutex);
      for (const pid_t thread : threads) syscall(SYS_tgkill, getpid(), thread, SIGPROF);
    }
    std::this_thread::sleep_for(interval);
  }
}

void JNICALL on_thread_start(jvmtiEnv*, JNIEnv* jni, jthread) {
  queue = ASGST_RegisterQueue(jni, 100, 0, &on_safepoint, nullptr);
  const std::lock_guard lock(threads_mutex);
  threads.insert(gettid());
}

// The queue ends with the thread, when it has told its samples.
void JNICALL on_thread_end(jvmtiEnv*, JNIEnv*, jthread) {
  const std::lock_guard lock(threads_mutex);
  threads.erase(gettid());
}

void JNICALL on_vm_init(jvmtiEnv*, JNIEnv* jni, jthread thread) {
  struct sigaction action{};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  on_thread_start(nullptr, jni, thread);
  running.store(true);
  sampler = std::thread(&sample);
}

void JNICALL on_vm_death(jvmtiEnv*, JNIEnv*) {
  if (!running.exchange(false)) return;
  sampler.join();
  const std::lock_guard lock(stacks_mutex);
  std::ofstream out(output);
  for (const auto& [stack, count] : stacks) out << stack << ' ' << count << '\n';
  if (lost > 0) out << "(left before its safepoint) " << lost << '\n';
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* text, void*) {
  const std::string options = text == nullptr ? "" : text;
  if (const size_t at = options.find("interval="); at != std::string::npos) {
    interval = std::chrono::microseconds(std::atoi(options.c_str() + at + 9));
  }
  if (const size_t at = options.find("output="); at != std::string::npos) {
    output = options.substr(at + 7, options.find(',', at) - at - 7);
  }
  jvmtiEnv* jvmti = nullptr;
  if ((ASGST_Capabilities() & ASGST_REGISTER_QUEUE) == 0 || interval.count() <= 0 ||
      vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11) != JNI_OK) {
    return JNI_ERR;
  }
  jvmtiEventCallbacks callbacks{};
  callbacks.VMInit = &on_vm_init;
  callbacks.VMDeath = &on_vm_death;
  callbacks.ThreadStart = &on_thread_start;
  callbacks.ThreadEnd = &on_thread_end;
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (const jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH,
                                 JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}
