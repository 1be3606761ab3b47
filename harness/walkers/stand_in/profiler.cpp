// A profiler as an agent library, for tests: samples by SIGPROF, walks frame pointers and recovers
// from its faults in its own handler. It does not ask whether small addresses can be read, which only
// a test's context has: the samples that its own timer makes of the JVM's threads do not fault. Its API is
// async-profiler's, as far as framestorm uses it. With the option `thread` it stops threads by SIGUSR2
// and walks them from a thread of its own, as JFR does before JDK 25. Its other option plants one
// defect:
//
//   unrecovered  it passes faults on
//   mask         it recovers by a jump that leaves a signal blocked
//   lock         it recovers while it holds a lock
//   malloc       it allocates in its handler with the frame pointer of the test: the samples of its own
//                timer halt threads within malloc, where it would wait for itself
//   drop         it stores a trace without its innermost frame
//   twice        it stores the innermost frame twice
//   nothing      it stores nothing
//   endless      it does not come to an end with the frame pointer of the test
//   abort        there it ends the process
//   slow         from its own thread it marks the thread's stack below sp, and takes that back late
//
// or with `old` its API is that of async-profiler before 4.3, without metrics.
#include <dlfcn.h>
#include <jvmti.h>
#include <pthread.h>
#include <semaphore.h>
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
#include <utility>

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
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSlowNs = 300'000'000;  // longer than the harness waits
constexpr uintptr_t kReach = 4096;
constexpr uintptr_t kSmall = 4096;
constexpr uintptr_t kTestsOwn = 4001;  // a frame pointer that no thread has by itself

std::string defect;  // written before the first signal
bool own_thread = false;
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
  while (has("endless") && fp == kTestsOwn) sink.fetch_add(1, std::memory_order_relaxed);
  if (has("abort") && fp == kTestsOwn) std::abort();
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

bool is_tests(const ucontext_t* context) {
  return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RBP]) == kTestsOwn;
}

void walk(const void* raw_context) {
  const auto* const context = static_cast<const ucontext_t*>(raw_context);
  if (has("malloc") && is_tests(context)) {
    auto* volatile block = static_cast<char*>(std::malloc(100));
    std::free(block);
  }
  sigjmp_buf here;
  if (sigsetjmp(here, 0) == 0) {
    recovery = &here;
    const bool locks = has("lock") && is_tests(context);
    if (locks) pthread_mutex_lock(&lock);
    read_frames(context);
    if (locks) pthread_mutex_unlock(&lock);
  }
  recovery = nullptr;
}

void on_sample(int, siginfo_t*, void* raw_context) {
  if (has("nothing")) return;
  walk(raw_context);
  JNIEnv* env = nullptr;
  java_vm->GetEnv(reinterpret_cast<void**>(&env), JNI_VERSION_1_8);
  last.tid = static_cast<int>(syscall(SYS_gettid));
  CallTrace trace = {env, 0, last.frames.data()};
  if (env != nullptr) get_call_trace(&trace, kMostFrames, raw_context);
  last.count = trace.count;
  stored.fetch_add(1, std::memory_order_relaxed);
}

void on_fault(int signo, siginfo_t* info, void* context) {
  const bool passes_on =
      has("unrecovered") && reinterpret_cast<uintptr_t>(info->si_addr) == kTestsOwn;
  if (recovery != nullptr && !passes_on) siglongjmp(*recovery, 1);
  previous_segv.sa_sigaction(signo, info, context);
}

// --- from a thread of its own

enum class Stop : uint8_t { none, wanted, stopped, over };
struct Stoppable {
  std::atomic<pthread_t> thread{};  // 0: nobody
  std::atomic<Stop> stop{Stop::none};
  const void* context = nullptr;
};
std::array<Stoppable, 256> stoppable;
sem_t stops;

Stoppable* find(pthread_t thread) {
  for (Stoppable& one : stoppable) {
    if (one.thread.load() == thread) return &one;
  }
  return nullptr;
}

void note_thread() {
  for (Stoppable& one : stoppable) {
    pthread_t nobody = 0;
    if (one.thread.compare_exchange_strong(nobody, pthread_self())) return;
  }
}

void on_stop(int, siginfo_t*, void* context) {
  Stoppable* const own = find(pthread_self());
  if (own == nullptr) return;
  own->context = context;
  Stop wanted = Stop::wanted;
  if (!own->stop.compare_exchange_strong(wanted, Stop::stopped)) return;
  sem_post(&stops);
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  sigdelset(&mask, SIGUSR2);
  while (own->stop.load() != Stop::over) sigsuspend(&mask);
  own->stop.store(Stop::none);
  sem_post(&stops);
}

bool await_stop() {
  timespec until = {};
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += kPeriodNs;
  if (until.tv_nsec >= kSecondNs) {
    until.tv_nsec -= kSecondNs;
    ++until.tv_sec;
  }
  return sem_timedwait(&stops, &until) == 0;
}

int64_t now_ns() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecondNs + time.tv_nsec;
}

// Null for a context that is no test's: such a thread runs on.
uintptr_t* below_tests_sp(const void* raw_context) {
  const auto* const context = static_cast<const ucontext_t*>(raw_context);
  if (!is_tests(context)) return nullptr;
  return reinterpret_cast<uintptr_t*>(context->uc_mcontext.gregs[REG_RSP]) - 1;
}

void sample(Stoppable* of) {
  of->stop.store(Stop::wanted);
  pthread_kill(of->thread.load(), SIGUSR2);
  Stop wanted = Stop::wanted;
  if (!await_stop()) {
    if (of->stop.compare_exchange_strong(wanted, Stop::none)) return;
    while (!await_stop()) {
    }
  }
  if (!has("nothing")) {
    walk(of->context);
    stored.fetch_add(1, std::memory_order_relaxed);
  }
  uintptr_t* const mark = has("slow") ? below_tests_sp(of->context) : nullptr;
  const uintptr_t unmarked = mark == nullptr ? 0 : std::exchange(*mark, ~*mark);
  of->stop.store(Stop::over);
  pthread_kill(of->thread.load(), SIGUSR2);
  while (!await_stop()) {
  }
  if (mark == nullptr) return;
  const int64_t begin = now_ns();
  while (now_ns() - begin < kSlowNs) {  // in no call that the harness holds it in
  }
  *mark = unmarked;
}

void* run_sampler(void*) {
  for (;;) {
    const timespec period = {0, kPeriodNs};
    nanosleep(&period, nullptr);
    // Threads that run may have anything in rbp: their faults are not to leave what a test is to see.
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    for (Stoppable& one : stoppable) {
      if (one.thread.load() != 0) sample(&one);
    }
  }
}

void JNICALL on_thread_start(jvmtiEnv*, JNIEnv*, jthread) { note_thread(); }
void JNICALL on_thread_end(jvmtiEnv*, JNIEnv*, jthread) {
  if (Stoppable* const own = find(pthread_self())) own->thread.store(0);
}

void JNICALL on_class_load(jvmtiEnv*, JNIEnv*, jthread, jclass) {}

void start() {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_sigaction = own_thread ? &on_stop : &on_sample;
  sigaction(own_thread ? SIGUSR2 : SIGPROF, &action, nullptr);
  action.sa_flags |= SA_NODEFER;
  action.sa_sigaction = &on_fault;
  if (has("mask")) sigaddset(&action.sa_mask, SIGUSR1);
  sigaction(SIGSEGV, &action, &previous_segv);
  if (own_thread) {
    note_thread();
    sem_init(&stops, 0, 0);
    pthread_t thread = {};
    pthread_create(&thread, nullptr, &run_sampler, nullptr);
    return;
  }
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
      const std::string frame = ";" + name_of(last.frames[static_cast<size_t>(i)].method);
      text += i == 0 && has("twice") ? frame + frame : frame;
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
  constexpr std::string_view kOwnThread = "thread,";
  own_thread = defect.starts_with(kOwnThread);
  if (own_thread) defect.erase(0, kOwnThread.size());
  vm->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_1_2);
  get_call_trace =
      reinterpret_cast<decltype(get_call_trace)>(dlsym(RTLD_DEFAULT, "AsyncGetCallTrace"));
  jvmtiEventCallbacks callbacks = {};
  callbacks.VMInit = &on_start;
  callbacks.ClassLoad = &on_class_load;
  callbacks.ThreadStart = &on_thread_start;
  callbacks.ThreadEnd = &on_thread_end;
  jvmti->SetEventCallbacks(&callbacks, sizeof callbacks);
  for (const jvmtiEvent event :
       {JVMTI_EVENT_CLASS_LOAD, JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return jvmti->SetEventNotificationMode(JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, nullptr) ==
                 JVMTI_ERROR_NONE
             ? JNI_OK
             : JNI_ERR;
}
}
