// Thread stacks that end at unreadable pages, above as well as below: a walker that reads past a
// stack's base faults always, not only when chance left the next addresses unmapped. glibc maps
// stacks back to back, so without this the same over-read is silent in one process and fatal in the
// next.
#pragma once

#include <pthread.h>

#include <atomic>

namespace framestorm {

struct FencedStack {
  std::atomic<int> tid{0};  // thread on it; 0: none yet or not known yet
  std::atomic<bool> taken{false};
  void* stack = nullptr;
  size_t size = 0;  // usable bytes
};

// Makes *out an attribute like `attributes`, with a fenced stack of its size (a stack of a thread
// that is gone is used again). Returns null, leaving *out alone, when `attributes` is null, names a
// stack of its own or asks for joinable threads: glibc keeps a joinable thread's descriptor on its
// stack until the join. Else the stack; its tid is to be set by the new thread. The caller destroys
// *out. Any thread; not async-signal-safe.
FencedStack* fence_stack(const pthread_attr_t* attributes, pthread_attr_t* out);

// The thread that was to use it was not started.
void give_back(FencedStack* stack);

}  // namespace framestorm
