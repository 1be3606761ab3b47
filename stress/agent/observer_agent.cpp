// libframestorm_observer.so=FOLDER: an agent that notes the shadow stacks of a profiler's own samples
// (observer.h). Beside it `-javaagent:truth.jar`, and the profiler.
#include <jvmti.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>

#include "harness/guard/unsafe_calls.h"
#include "stress/agent/observer.h"

namespace framestorm::stress {
namespace {

// Never freed: handlers use it.
std::atomic<Observer*> observer{nullptr};

jint join(JavaVM* vm, const char* folder) {
  try {
    auto live = [given = std::string(folder == nullptr ? "" : folder)](JNIEnv* env) {
      auto* const made = std::make_unique<Observer>(Jvm::get(), given).release();
      made->start(env, Truth::get());
      observer.store(made, std::memory_order_release);
    };
    Jvm::join(vm,
              {live,
               [](JNIEnv* env, jthread thread) {
                 if (Observer* const own = observer.load(std::memory_order_acquire)) {
                   own->enter_thread(env, thread);
                 }
               },
               [](JNIEnv*, jthread) {
                 if (Observer* const own = observer.load(std::memory_order_acquire)) {
                   own->leave_thread();
                 }
               },
               [](JNIEnv*) {
                 if (Observer* const own = observer.load(std::memory_order_acquire)) own->finish();
               }},
              /*running=*/false);
    return JNI_OK;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "framestorm: %s\n", error.what());
    return JNI_ERR;
  }
}

// Before anything else: the program's threads are its own.
[[gnu::constructor]] void leave_threads_alone() { interposer::leave_threads_alone(); }

}  // namespace
}  // namespace framestorm::stress

extern "C" JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void*) {
  return framestorm::stress::join(vm, options);
}
