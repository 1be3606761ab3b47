// The samplers' signals, and code that they are not to interrupt.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace framestorm::stress {

int timer_signal();
int halt_signal();

// The calling thread's own samples wait while it lasts. A thread that ends its timer is not put off any
// more by what its handler costs: with a short interval it would never come to do it. And what it does
// with the registry's lock others wait for.
class SamplesBlocked {
 public:
  explicit SamplesBlocked(std::initializer_list<int> signals);
  ~SamplesBlocked();
  SamplesBlocked(const SamplesBlocked&) = delete;
  SamplesBlocked& operator=(const SamplesBlocked&) = delete;

 protected:
  explicit SamplesBlocked(const sigset_t& blocked);

 private:
  sigset_t before_;
};
class TimerBlocked : SamplesBlocked {
 public:
  TimerBlocked() : SamplesBlocked({timer_signal()}) {}
};
class AllBlocked : SamplesBlocked {
 public:
  AllBlocked() : SamplesBlocked({timer_signal(), halt_signal()}) {}
};
// While a thread of the agent's own is started, which takes its mask from here: the program's signals
// are the program's.
class EverySignalBlocked : SamplesBlocked {
 public:
  EverySignalBlocked();
};

}  // namespace framestorm::stress
