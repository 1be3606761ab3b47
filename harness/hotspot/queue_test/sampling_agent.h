// What agents have in common that walk each Java thread at the signals of a timer of its own.
#pragma once

#include <jvmti.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace sampling_agent {

// "interval=MICROSECONDS,output=FILE", each of which may be missing. False where the interval is none.
inline bool parse(const std::string& options, long* interval_us, std::string* output) {
  if (const size_t at = options.find("interval="); at != std::string::npos) {
    *interval_us = std::atol(options.c_str() + at + 9);
  }
  if (const size_t at = options.find("output="); at != std::string::npos) {
    *output = options.substr(at + 7, options.find(',', at) - at - 7);
  }
  return *interval_us > 0;
}

// It interrupts the calling thread once it is set.
inline timer_t make_timer() {
  timer_t timer{};
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGPROF;
  event._sigev_un._tid = gettid();
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  return timer;
}

// `every_us`: from then on; 0: once. Async-signal-safe.
inline void set_timer(timer_t timer, long us, long every_us = 0) {
  const itimerspec spec{{every_us / 1000000, every_us % 1000000 * 1000},
                        {us / 1000000, us % 1000000 * 1000}};
  timer_settime(timer, 0, &spec, nullptr);
}

// Threads of another agent may start before the VM is initialised.
inline void start(jvmtiEnv* jvmti, void (*on_signal)(int, siginfo_t*, void*),
                  const jvmtiEventCallbacks& callbacks) {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  jvmti->SetEventCallbacks(&callbacks, sizeof(callbacks));
  for (const jvmtiEvent event : {JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH,
                                 JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END}) {
    jvmti->SetEventNotificationMode(JVMTI_ENABLE, event, nullptr);
  }
}

}  // namespace sampling_agent
