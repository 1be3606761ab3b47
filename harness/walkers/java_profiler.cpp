#include "harness/walkers/java_profiler.h"

#include <dlfcn.h>

#include <stdexcept>

namespace framestorm {

JavaProfiler::JavaProfiler(const std::filesystem::path& library, JavaVM* vm, JNIEnv* env)
    : library_(dlopen(library.c_str(), RTLD_NOW)) {
  if (library_ == nullptr) {
    throw std::runtime_error(std::string("cannot load the profiler: ") + dlerror());
  }
  const auto on_load = reinterpret_cast<jint (*)(JavaVM*, void*)>(dlsym(library_, "JNI_OnLoad"));
  const auto init = reinterpret_cast<jboolean (*)(JNIEnv*, jclass)>(
      dlsym(library_, "Java_com_datadoghq_profiler_JavaProfiler_init0"));
  execute_ = reinterpret_cast<jstring (*)(JNIEnv*, jobject, jstring)>(dlsym(library_, kExecute));
  if (on_load == nullptr || init == nullptr || execute_ == nullptr ||
      on_load(vm, nullptr) < JNI_VERSION_1_1 || init(env, nullptr) != JNI_TRUE) {
    throw std::runtime_error(library.string() + " could not be initialised as java-profiler is");
  }
}

void JavaProfiler::execute(JNIEnv* env, const std::string& command) const {
  execute_(env, nullptr, env->NewStringUTF(command.c_str()));
}

void JavaProfiler::record_trace_root(void* library, JNIEnv* env) {
  constexpr jint kMostNames = 100;
  const auto record =
      reinterpret_cast<jboolean (*)(JNIEnv*, jobject, jlong, jstring, jstring, jint)>(
          dlsym(library, "Java_com_datadoghq_profiler_JavaProfiler_recordTrace0"));
  if (record == nullptr) return;
  const jstring endpoint = env->NewStringUTF("endpoint");
  const jstring operation = env->NewStringUTF("operation");
  record(env, nullptr, 1, endpoint, operation, kMostNames);
  env->DeleteLocalRef(endpoint);
  env->DeleteLocalRef(operation);
}

}  // namespace framestorm
