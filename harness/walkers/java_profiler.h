// dd-trace's java-profiler as its Java class drives it, without that class.
#pragma once

#include <jni.h>

#include <filesystem>
#include <string>

namespace framestorm {

class JavaProfiler {
 public:
  // What a library exports that is started from Java.
  static constexpr const char* kExecute = "Java_com_datadoghq_profiler_JavaProfiler_execute0";

  // Loads the library into a running JVM, and initialises it as JavaProfiler.getInstance() does. On an
  // attached thread. Throws std::runtime_error.
  JavaProfiler(const std::filesystem::path& library, JavaVM* vm, JNIEnv* env);

  // As JavaProfiler.execute(): "start,cpu=10ms", "stop". On an attached thread. An exception that it
  // throws is left pending.
  void execute(JNIEnv* env, const std::string& command) const;

  // As JavaProfiler.recordTraceRoot() of a library that is initialised, which dd-trace calls for each
  // request. A recording without any has empty pools, which the JDK's parser refuses. On an attached
  // thread.
  static void record_trace_root(void* library, JNIEnv* env);

  void* library() const { return library_; }

 private:
  void* library_;
  jstring (*execute_)(JNIEnv*, jobject, jstring);
};

}  // namespace framestorm
