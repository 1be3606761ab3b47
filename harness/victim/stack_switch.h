// User-level stack switch, for the loop that migrates between threads (migrating_loop.h).
#pragma once

#include <cstddef>

namespace framestorm {

// Saves the callee-saved state on the current stack, stores the stack pointer in *save and
// continues where `load` was saved. Async-signal-safe. What the two stacks share is the thread:
// thread-local addresses must not be kept across the call when the other side moves on to another
// thread.
extern "C" void framestorm_switch_stack(void** save, void* load);

// A stack pointer to load first: continues in entry(), which must not return, with an empty frame
// chain above it.
void* prepare_stack(void* stack, size_t size, void (*entry)());

}  // namespace framestorm
