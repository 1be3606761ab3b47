// The system call that a signal found a thread in (interrupted_call_x86_64.cpp). Async-signal-safe.
#pragma once

#include <ucontext.h>

namespace framestorm::stress {

struct InterruptedCall {
  // The kernel interrupted a system call that the thread was waiting in: pc is at the instruction
  // again, or behind it with EINTR.
  bool waiting = false;
  // It is to begin one again that a signal keeps from ending, however often it begins: clone(2) and
  // its kin.
  bool creating = false;
};

InterruptedCall interrupted_call(const ucontext_t& context);

}  // namespace framestorm::stress
