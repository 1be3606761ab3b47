#include "stress/agent/samples_blocked.h"

namespace framestorm::stress {

int timer_signal() { return SIGRTMAX - 7; }
int halt_signal() { return SIGRTMAX - 8; }

namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signo : signals) sigaddset(&set, signo);
  return set;
}

sigset_t every_signal() {
  sigset_t set;
  sigfillset(&set);
  return set;
}

}  // namespace

SamplesBlocked::SamplesBlocked(const sigset_t& blocked) {
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SamplesBlocked::SamplesBlocked(std::initializer_list<int> signals)
    : SamplesBlocked(set_of(signals)) {}

EverySignalBlocked::EverySignalBlocked() : SamplesBlocked(every_signal()) {}

SamplesBlocked::~SamplesBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace framestorm::stress
