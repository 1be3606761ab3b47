// libframestorm_start.so=FILE=OPTIONS: an agent that starts java-profiler in a program as dd-trace does,
// from a running JVM, and stops it at the end, so that its recording is whole.
#include <jni.h>
#include <jvmti.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "harness/walkers/java_profiler.h"

namespace {

constexpr int kFailed = 2;  // as the agent that samples ends a process

std::string given;
std::optional<framestorm::JavaProfiler> profiler;

[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "framestorm: %s\n", why);
  std::_Exit(kFailed);
}

void JNICALL start(jvmtiEnv* /*jvmti*/, JNIEnv* env, jthread /*thread*/) {
  const size_t equals = given.find('=');
  JavaVM* vm = nullptr;
  try {
    if (equals == std::string::npos) throw std::runtime_error("no options for the profiler");
    if (env->GetJavaVM(&vm) != JNI_OK) throw std::runtime_error("there is no JVM");
    profiler.emplace(given.substr(0, equals), vm, env);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  profiler->execute(env, given.substr(equals + 1));
  if (env->ExceptionCheck() == JNI_TRUE) {
    env->ExceptionDescribe();
    fail("the profiler does not take its options");
  }
  framestorm::JavaProfiler::record_trace_root(profiler->library(), env);
}

void JNICALL stop(jvmtiEnv* /*jvmti*/, JNIEnv* env) {
  if (profiler) profiler->execute(env, "stop");
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void* /*reserved*/) {
  given = options == nullptr ? "" : options;
  void* found = nullptr;
  if (vm->GetEnv(&found, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  auto* const jvmti = static_cast<jvmtiEnv*>(found);
  jvmtiEventCallbacks callbacks = {};
  callbacks.VMInit = &start;
  callbacks.VMDeath = &stop;
  if (jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE) return JNI_ERR;
  for (const jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH}) {
    if (jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr) != JVMTI_ERROR_NONE) {
      return JNI_ERR;
    }
  }
  return JNI_OK;
}
