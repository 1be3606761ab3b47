// The C side of framestorm.workloads.JniSandwich. Its compute loops keep a sample in C under Java
// frames.

#include <jni.h>

#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>

namespace {

std::atomic<std::int64_t> calls_from_c{0};

std::uint32_t mixed(std::uint32_t seed, int rounds) {
  volatile std::uint32_t value = seed;
  for (int i = 0; i < rounds; ++i) {
    value = value * 1664525U + 1013904223U;
  }
  return value;
}

void throw_state(JNIEnv* env, const char* message) {
  jclass type = env->FindClass("java/lang/IllegalStateException");
  if (type != nullptr) {
    env->ThrowNew(type, message);
  }
}

// On a thread of C's own: attached, calls run() of `body`, a global reference, detached.
void run_attached(JavaVM* vm, jobject body, std::atomic<bool>& failed) {
  JNIEnv* env = nullptr;
  if (vm->AttachCurrentThread(reinterpret_cast<void**>(&env), nullptr) != JNI_OK) {
    failed = true;
    return;
  }
  jmethodID run = env->GetMethodID(env->GetObjectClass(body), "run", "()V");
  if (run != nullptr) {
    env->CallVoidMethod(body, run);
  }
  if (env->ExceptionCheck() != JNI_FALSE) {
    env->ExceptionClear();
    failed = true;
  }
  vm->DetachCurrentThread();
}

}  // namespace

extern "C" {

JNIEXPORT jlong JNICALL Java_framestorm_workloads_JniSandwich_down(JNIEnv* env, jobject self,
                                                                   jobject worker, jint depth,
                                                                   jint kind, jboolean clear) {
  jmethodID bounce =
      env->GetMethodID(env->GetObjectClass(self), "bounce", "(Lframestorm/workloads/Worker;II)J");
  if (bounce == nullptr) {
    return 0;
  }
  mixed(static_cast<std::uint32_t>(depth), 200);
  calls_from_c.fetch_add(1, std::memory_order_relaxed);
  jlong result = env->CallLongMethod(self, bounce, worker, depth - 1, kind);
  if (clear != JNI_FALSE && env->ExceptionCheck() != JNI_FALSE) {
    env->ExceptionClear();
    return -1;
  }
  return result;
}

JNIEXPORT jlong JNICALL Java_framestorm_workloads_JniSandwich_critical(JNIEnv* env, jclass,
                                                                       jintArray array,
                                                                       jint rounds) {
  const jsize length = env->GetArrayLength(array);
  auto* elements = static_cast<jint*>(env->GetPrimitiveArrayCritical(array, nullptr));
  if (elements == nullptr) {
    return 0;
  }
  jlong sum = 0;
  for (jsize i = 0; i < length; ++i) {
    sum += elements[i];
  }
  sum += mixed(static_cast<std::uint32_t>(sum), rounds);
  env->ReleasePrimitiveArrayCritical(array, elements, JNI_ABORT);
  return sum;
}

JNIEXPORT jlong JNICALL Java_framestorm_workloads_JniSandwich_spin(JNIEnv*, jclass, jint rounds) {
  return mixed(1, rounds);
}

JNIEXPORT void JNICALL Java_framestorm_workloads_JniSandwich_onAttachedThread(JNIEnv* env, jclass,
                                                                              jobject body) {
  JavaVM* vm = nullptr;
  jobject global = env->NewGlobalRef(body);
  if (global == nullptr || env->GetJavaVM(&vm) != JNI_OK) {
    return;
  }
  std::atomic<bool> failed{false};
  try {
    std::thread thread(run_attached, vm, global, std::ref(failed));
    thread.join();
  } catch (const std::system_error&) {
    failed = true;
  }
  env->DeleteGlobalRef(global);
  if (failed) {
    throw_state(env, "a thread could not be started, attached or run");
  }
}

JNIEXPORT jlong JNICALL Java_framestorm_workloads_JniSandwich_callsFromC(JNIEnv*, jclass) {
  return calls_from_c.load(std::memory_order_relaxed);
}

}  // extern "C"
