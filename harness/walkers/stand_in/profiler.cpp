// A profiler as an agent library, for tests: samples by SIGPROF, walks frame pointers and recovers
// from its faults in its own handler. It does not ask whether small addresses can be read, which only
// a test's context has: the samples that its own timer makes of the JVM's threads do not fault. Its API is
// async-profiler's, as far as framestorm uses it. Its option plants one defect:
//
//   unrecovered  it passes faults on
//   mask         it recovers by a jump that leaves a signal blocked
//   lock         it recovers while it holds a lock
//   malloc       it allocates in its handler
//   drop         it stores a trace without its innermost frame
//   nothing      it stores nothing
//
// or with `old` its API is that of async-profiler before 4.3, without metrics.
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using AsyncGetCallTraceFrame = struct {
  jint bci;
  jmethodID method;
};
struct CallTrace {
  JNIEnv* env;
  jint count;
  AsyncGetCallTraceFrame* frames;
};

constexpr size_t kMostFrames = 256;
constexpr int64_t kPeriodNs = 5'000'000;
constexpr uintptr_t kReach = 4096;
constexpr uintptr_t kSmall = 4096;

std::string defect;  // written before the first signal
std::atomic<uint64_t> stored{0};
std::atomic<uint64_t> sink{0};
jvmtiEnv* jvmti = nullptr;
JavaVM* java_vm = nullptr;
void (*get_call_trace)(CallTrace*, jint, void*) = nullptr;
struct sigaction previous_segv;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
thread_local sigjmp_buf* recovery __attribute__((tls_model("initial-exec"))) = nullptr;

struct Trace {
  int tid = 0;
  jint count = 0;
  std::array<AsyncGetCallTraceFrame, kMostFrames> frames;
};
Trace last;  // what it would keep of all

bool has(std::string_view name) { return defect == name; }

void read_frames(const ucontext_t* context) {
  uintptr_t fp = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RBP]);
  const auto sp = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
  for (size_t i = 0; i < kMostFrames; ++i) {
    const bool on_stack = fp % sizeof(fp) == 0 && fp - sp < kReach;
    if (!on_stack && (fp == 0 || fp >= kSmall)) break;
    const uintptr_t next = *reinterpret_cast<volatile uintptr_t*>(fp);
    sink.fetch_add(next, std::memory_order_relaxed);
    if (next <= fp) break;
    fp = next;
  }
}

void on_sample(int, siginfo_t*, void* raw_context) {
  if (has("nothing")) return;
  if (has("malloc")) {
    auto* volatile block = static_cast<char*>(std::malloc(100));
    std::free(block);
  }
  sigjmp_buf here;
  if (sigsetjmp(here, 0) == 0) {
    recovery = &here;
    if (has("lock")) pthread_mutex_lock(&lock);
    read_frames(static_cast<const ucontext_t*>(raw_context));
    if (has("lock")) pthread_mutex_unlock(&lock);
  }
  recovery = nullptr;
  JNIEnv* env = nullptr;
  java_vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8);
  last.tid = static_cast<int>(syscall(SYS_gettid));
  CallTrace trace = {env, 0, last.frames.data()};
  if (env != nullptr) get_call_trace(&trace, kMostFrames, raw_context);
  last.count = trace.count;
  stored.fetch_add(1, std::memory_order_relaxed);
}

void on_fault(int signo, siginfo_t* info, void* context) {
  if (recovery != nullptr && !has("unrecovered")) siglongjmp(*recovery, 1);
  previous_segv.sa_sigaction(signo, info, context);
}

void JNICALL on_class_load(jvmtiEnv*, JNIEnv*, jthread, jclass) {}

void start() {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_sigaction = &on_sample;
  sigaction(SIGPROF, &action, nullptr);
  action.sa_flags |= SA_NODEFER;
  action.sa_sigaction = &on_fault;
  if (has("mask")) sigaddset(&action.sa_mask, SIGUSR1);
  sigaction(SIGSEGV, &action, &previous_segv);
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  timer_t timer = nullptr;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  const itimerspec period = {{0, kPeriodNs}, {0, kPeriodNs}};
  timer_settime(timer, 0, &period, nullptr);
}

void JNICALL on_start(jvmtiEnv*, JNIEnv*, jthread) { start(); }

std::string name_of(jmethodID method) {
  jclass owner = nullptr;
  char* signature = nullptr;
  char* name = nullptr;
  std::string text = "?";
  if (jvmti->GetMethodDeclaringClass(method, &owner) == JVMTI_ERROR_NONE &&
      jvmti->GetClassSignature(owner, &signature, nullptr) == JVMTI_ERROR_NONE &&
      jvmti->GetMethodName(method, &name, nullptr, nullptr) == JVMTI_ERROR_NONE) {
    text = std::string(signature + 1, std::strlen(signature) - 2) + "." + name + "_[j]";
  }
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(signature));
  jvmti->Deallocate(reinterpret_cast<unsigned char*>(name));
  return text;
}

}  // namespace

extern "C" {

// As asprof.h has it.
const char* asprof_execute(const char* command, void (*write)(const char* text, size_t size)) {
  std::string text;
  if (std::string_view(command) == "metrics") {
    if (has("old")) return "no such command";
    text = "samples_total " + std::to_string(stored.load()) + "\nsamples_skipped_total 0\n";
  } else if (std::string_view(command).ends_with("flat=0")) {
    text = "Total samples       : " + std::to_string(stored.load()) + "\n";
  } else if (stored.load() > 0) {
    text = "[thread tid=" + std::to_string(last.tid) + "]";
    for (jint i = last.count - 1; i >= (has("drop") ? 1 : 0); --i) {
      text += ";" + name_of(last.frames[static_cast<size_t>(i)].method);
    }
    text += " 1\n";
    last.count = 0;
  }
  write(text.data(), text.size());
  return nullptr;
}

jint Agent_OnLoad(JavaVM* vm, char* options, void*) {
  java_vm = vm;
  defect = options == nullptr ? "" : options;
  vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_1_2);
  get_call_trace =
      reinterpret_cast<decltype(get_call_trace)>(dlsym(RTLD_DEFAULT, "AsyncGetCallTrace"));
  jvmtiEventCallbacks callbacks = {};
  callbacks.VMInit = &on_start;
  callbacks.ClassLoad = &on_class_load;
  jvmti->SetEventCallbacks(&callbacks, sizeof callbacks);
  jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_CLASS_LOAD, nullptr);
  return jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, nullptr) ==
                 JVMTI_ERROR_NONE
             ? JNI_OK
             : JNI_ERR;
}
}
