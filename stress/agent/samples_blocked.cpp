#include "stress/agent/samples_blocked.h"

namespace framestorm::stress {

int timer_signal() { return SIGRTMAX - 7; }
int halt_signal() { return SIGRTMAX - 8; }

SamplesBlocked::SamplesBlocked(std::initializer_list<int> signals) {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signo : signals) sigaddset(&blocked, signo);
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SamplesBlocked::~SamplesBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace framestorm::stress
