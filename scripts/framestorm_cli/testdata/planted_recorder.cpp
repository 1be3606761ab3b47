// A profiler as an agent library, options: the file that it records into, in the form of traces.tsv
// (stress/agent/recorded_truth.h). Samples by SIGPROF and walks by AsyncGetCallTrace. -DDEFECT=1: traces lack
// the frame behind the innermost; 2: that frame has the outermost one's method; 3: samples are told in the
// name of the trace before.
#include <jvmti.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <dlfcn.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Frame {
  jint bci;
  jmethodID method;
};
struct CallTrace {
  JNIEnv* env;
  jint count;
  Frame* frames;
};
using Walk = void(CallTrace*, jint, void*);

constexpr size_t kMostSamples = 20'000;
constexpr jint kMostFrames = 64;

struct Sample {
  int tid = 0;
  int64_t ns = 0;
  jint count = 0;
  std::array<Frame, kMostFrames> frames;
};
std::vector<Sample> samples(kMostSamples);
std::atomic<size_t> taken{0};
Walk* walk = nullptr;
std::string file;
// Null on a thread that is not in Java yet, or no longer. Asking GetEnv in the handler deadlocks there: it allocates
// libjvm's thread-local storage, perhaps in the middle of malloc.
thread_local JNIEnv* own_env __attribute__((tls_model("initial-exec"))) = nullptr;

void on_sample(int, siginfo_t*, void* context) {
  JNIEnv* const env = own_env;
  if (env == nullptr) return;
  const size_t at = taken.fetch_add(1);
  if (at >= kMostSamples) return;
  Sample& sample = samples[at];
  sample.tid = static_cast<int>(syscall(SYS_gettid));
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  sample.ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  CallTrace trace = {env, 0, sample.frames.data()};
  walk(&trace, kMostFrames, context);
  sample.count = trace.count;
}

void JNICALL begin_thread(jvmtiEnv*, JNIEnv* env, jthread) { own_env = env; }
void JNICALL end_thread(jvmtiEnv*, JNIEnv*, jthread) { own_env = nullptr; }

void JNICALL start(jvmtiEnv* jvmti, JNIEnv* env, jthread thread) {
  begin_thread(jvmti, env, thread);
  struct sigaction action = {};
  action.sa_sigaction = &on_sample;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every, nullptr);
}

std::string text_of(jvmtiEnv* jvmti, const Frame& frame) {
  jclass owner = nullptr;
  char* type = nullptr;
  char* name = nullptr;
  char* descriptor = nullptr;
  if (jvmti->GetMethodDeclaringClass(frame.method, &owner) != JVMTI_ERROR_NONE ||
      jvmti->GetClassSignature(owner, &type, nullptr) != JVMTI_ERROR_NONE ||
      jvmti->GetMethodName(frame.method, &name, &descriptor, nullptr) != JVMTI_ERROR_NONE) {
    return "-";
  }
  const std::string_view whole = type;
  return std::string(whole.substr(1, whole.size() - 2)) + "." + name + descriptor + "@" +
         std::to_string(frame.bci);
}

void JNICALL stop(jvmtiEnv* jvmti, JNIEnv*) {
  const itimerval never = {};
  setitimer(ITIMER_PROF, &never, nullptr);
  std::FILE* const out = std::fopen(file.c_str(), "w");
  if (out == nullptr) return;
  long id = -1;
  for (size_t i = 0; i < taken && i < kMostSamples; ++i) {
    Sample& sample = samples[i];
    jint count = sample.count;
    if (count > 0) {
      std::fprintf(out, "trace\t%ld\t%d", ++id, count == kMostFrames);
      for (jint at = 0; at < count; ++at) {
        if (DEFECT == 1 && at == 1 && count > 2) continue;
        const bool other = DEFECT == 2 && at == 1 && count > 3;
        const Frame& frame = sample.frames[static_cast<size_t>(other ? count - 1 : at)];
        std::fprintf(out, "\t%s", text_of(jvmti, frame).c_str());
      }
      std::fputc('\n', out);
    }
    const long told = DEFECT == 3 && id > 0 ? id - 1 : id;
    std::fprintf(out, "sample\t%d\t0\t%ld\t%ld\n", sample.tid, static_cast<long>(sample.ns),
                 count > 0 ? told : -1L);
  }
  std::fclose(out);
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  file = options;
  walk = reinterpret_cast<Walk*>(dlsym(RTLD_DEFAULT, "AsyncGetCallTrace"));
  void* found = nullptr;
  if (walk == nullptr || vm->GetEnv(&found, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  auto* const jvmti = static_cast<jvmtiEnv*>(found);
  jvmtiEventCallbacks callbacks = {};
  callbacks.ThreadStart = &begin_thread;
  callbacks.ThreadEnd = &end_thread;
  callbacks.VMInit = &start;
  callbacks.VMDeath = &stop;
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (const jvmtiEvent event : {JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END,
                                 JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
  return JNI_OK;
}
