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
  record_trace_ = reinterpret_cast<jboolean (*)(JNIEnv*, jobject, jlong, jstring, jstring, jint)>(
      dlsym(library_, "Java_com_datadoghq_profiler_JavaProfiler_recordTrace0"));
  if (on_load == nullptr || init == nullptr || execute_ == nullptr ||
      on_load(vm, nullptr) < JNI_VERSION_1_1 || init(env, nullptr) != JNI_TRUE) {
    throw std::runtime_error(library.string() + " could not be initialised as java-profiler is");
  }
}

void JavaProfiler::execute(JNIEnv* env, const std::string& command) const {
  execute_(env, nullptr, env->NewStringUTF(command.c_str()));
}

void JavaProfiler::record_trace_root(JNIEnv* env) const {
  constexpr jint kMostNames = 100;
  if (record_trace_ == nullptr) return;
  record_trace_(env, nullptr, 1, env->NewStringUTF("endpoint"), env->NewStringUTF("operation"),
                kMostNames);
}

}  // namespace framestorm
