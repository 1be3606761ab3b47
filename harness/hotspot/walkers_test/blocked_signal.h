// A signal that the calling thread blocks.
#pragma once

#include <pthread.h>

#include <csignal>

namespace framestorm {

class BlockedSignal {
 public:
  explicit BlockedSignal(int signal) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &_before);
  }
  ~BlockedSignal() { pthread_sigmask(SIG_SETMASK, &_before, nullptr); }
  BlockedSignal(const BlockedSignal&) = delete;
  BlockedSignal& operator=(const BlockedSignal&) = delete;

 private:
  sigset_t _before;
};

}  // namespace framestorm
