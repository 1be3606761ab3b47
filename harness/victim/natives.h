// The native side of framestorm.Harness and of native victims: what runs on victims' own threads.
#pragma once

#include <jni.h>

#include <chrono>
#include <cstdint>

#include "harness/input/input.h"
#include "harness/jvm/jvm.h"

namespace framestorm::natives {

// Between two looks at what another thread does: who waits sleeps, and does not yield (Harness.glance).
inline constexpr std::chrono::microseconds kGlance{50};

// Binds framestorm.Harness. Throws SetupError when the class is not on the class path.
void bind(const Jvm& jvm);

// What a victim's thread has said of itself; any thread.
struct Registration {
  int tid = 0;
  jobject thread = nullptr;  // global reference
  int64_t java_id = 0;       // Thread.getId() of it
  uintptr_t stack_base = 0;  // native threads only
  uintptr_t stack_end = 0;
};
Registration registration(ScenarioId scenario);

// Whether the scenario's victim is in a function in C that spins until stop(); any thread.
bool is_spinning(ScenarioId scenario);

// Starts a native victim, attached to `vm` unless that is null, and returns once it spins. It spins
// until stop(). Its thread is detached, as HotSpot's are, so that its stack is fenced like theirs
// (guard/fenced_stack.h). False when it could not be started or attached.
bool start_thread(ScenarioId scenario, JavaVM* vm);

// While paused, a victim of the scenario that spins in C sleeps instead.
void pause(ScenarioId scenario, bool paused);

// Transient threads. `arm` makes the next thread that starts (or ends) step itself and park after
// `steps` instructions, a starting one before that when it comes to `pc` (0: nowhere); `permit`
// lets the churn victim of the scenario start one.
void arm_start(uint64_t steps, uintptr_t pc);
void arm_end(uint64_t steps);
void permit(ScenarioId churn);
// Thread id of the armed thread once it is stepping, 0 before that.
int armed_tid();
void disarm();

// What framestorm.Harness.beginStepping() and endStepping() do, which every victim calls at its first
// and its last instruction; null for nothing.
void set_stepping(void (*begin)(JNIEnv*), void (*end)());

// Called on every ending Java thread.
void on_thread_end();

// Ends all spinning; and lets victims spin that are started from now on.
void stop();
void go_on();

}  // namespace framestorm::natives
