// Profilers that stop a thread by a signal and walk it from a thread of their own, as JFR does before
// JDK 25. Their libc calls are interposed, so that the walk is of whom the harness says, and happens
// within that thread's guarded walk. No signal is sent:
//
//   the profiler's thread                          the walked thread, in Guard::call
//   nanosleep() between samples: held              walk()
//   pthread_kill(walked, signal) ────────────────> handler(signal, siginfo, mutated context)
//   sem_timedwait()              <────────────────   sem_post(), sigsuspend()
//   walks: guarded, its unsafe calls recorded
//   pthread_kill(walked, signal) ────────────────>   sem_post(), returns
//   stores the sample; nanosleep() ──────────────> walk() returns
//
// Other threads that it means to stop do not answer it. A fault that it does not survive, or a hang,
// ends the walked thread's walk; the profiler's thread then stands still for good.
#pragma once

#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include <cstdint>

#include "harness/guard/guard.h"
#include "harness/guard/signal_table.h"

namespace framestorm::sampler {

// Asks the profiler's own recovery about a fault on its thread, where that is the JVM: goes on
// elsewhere by a jump, or returns whether the walk goes on where it was.
using Survive = bool (*)(int signo, siginfo_t* info, void* context);

// Looks out for a thread that stops others by `signo`. Any thread.
void look_for(int signo);
// Whether one has been seen to: another thread has waited in its handler.
bool is_found();
// Holds it from its next pause on. False when it does not come there. Not in a walk.
bool hold(Survive survive);
// Its thread id; 0 when none is held.
int held_thread();
// Whether it does nothing now, or there is none. A walk returns before it does where it takes long, as on
// a busy machine; until then the walked thread may bear its mark. Any thread.
bool rests();
// Whether the held thread, or that there is none, is ready for walks: it does not wait for a lock that
// a halted thread has. World halted.
bool is_ready();

enum class Answer : uint8_t {
  walked,
  passed_over,  // it did not want to stop the thread
  late          // it waits for something, most likely for a lock that a halted thread holds
};
// The held thread walks the calling one, whose `handler` is called as the signal's. Signal context,
// world halted, in Guard::call or not. Does not return when that walk does not.
Answer walk(signals::Handler handler, int signo, siginfo_t* info, void* context);

// --- of the guard's own

// Whether the calling thread is the held one.
bool is_this_thread();
// Its sem_timedwait(); `real` is libc's.
int wait_held(sem_t* semaphore, int (*real)(sem_t*, const timespec*));
// On it, in the guard's handler: see Survive.
bool survives(int signo, siginfo_t* info, void* context);
// On it: its walk has ended, and the record says how.
[[noreturn]] void give_up(WalkEnd end);

}  // namespace framestorm::sampler
