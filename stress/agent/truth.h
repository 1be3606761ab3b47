// The agent's side of the shadow stacks: what instrumented code calls when a push does not go the
// fast way (Shadow.java), threads and virtual threads that come and go, and checks at safepoints.
//
// A check is made in a push that a sample has asked for. The thread is in a native method then, at a
// safepoint as far as walkers go: GetStackTrace and a walker look at it in one call, and no time
// passes between. What is compared, the judge compares (truth_check.h).
#pragma once

#include <jni.h>
#include <jvmti.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "stress/agent/registry.h"
#include "stress/shadow/instrumented_methods.h"
#include "stress/shadow/shadow_stack.h"

namespace framestorm::stress {

class Truth {
 public:
  // Of the process; its stacks are there for good, as Java code has their addresses.
  static Truth& get();

  ShadowStacks& stacks() { return stacks_; }
  InstrumentedMethods& methods() { return methods_; }

  // VM running, before threads are entered. Hears of virtual threads from here on. Throws SetupError.
  void begin(JNIEnv* env, jvmtiEnv* jvmti);
  // Threads are known from here on. `check` makes the check of its thread's stack that a sample has
  // asked for. Both stay for good.
  using Check = std::function<void(SampledThread&)>;
  void attach(Registry& threads, Check check);
  int64_t number_of(JNIEnv* env, jobject thread) const {
    return env->GetLongField(thread, number_);
  }

  // Of natives, on the thread that is in them.
  jint slow_enter(JNIEnv* env, jlong thread, jint method);
  void slow_exit(jlong thread, jint depth);
  // A virtual thread begins or ends to run on the calling one. JVMTI's events.
  void mounted(JNIEnv* env, jobject virtual_thread);
  void unmounted();

 private:
  template <typename Function>
  void with_own_record(Function function);

  ShadowStacks stacks_;
  InstrumentedMethods methods_;
  Check check_;  // before threads_
  std::atomic<Registry*> threads_{nullptr};
  jfieldID number_ = nullptr;
};

}  // namespace framestorm::stress
