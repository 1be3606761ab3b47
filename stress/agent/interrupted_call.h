// The system call that a signal found a thread in, x86-64. Async-signal-safe.
#pragma once

#include <ucontext.h>

namespace framestorm::stress {

// Whether the kernel interrupted a system call that the thread was waiting in: pc is at the
// instruction again, or behind it with EINTR.
bool is_waiting(const ucontext_t& context);

// Whether the thread is to begin a system call again that a signal keeps from ending, however often
// it begins: clone(2) and its kin.
bool is_creating(const ucontext_t& context);

}  // namespace framestorm::stress
