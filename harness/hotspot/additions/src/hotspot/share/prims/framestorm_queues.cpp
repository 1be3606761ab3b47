/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

#include "prims/asyncQueues.hpp"

#include "prims/asyncWalkedThread.hpp"
#include "runtime/handshake.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/safepoint.hpp"
#include "runtime/safepointMechanism.inline.hpp"

// For fuzzers, which make all calls of safepoint queues in a signal handler on a halted thread: what
// happens to queues elsewhere. One thread at a time.

static JavaThread* fuzzed = nullptr;
static bool ends = false;
static AsyncQueues::Memory memory_before;
static SafepointMechanism::ThreadData poll_before;

extern "C" {

// Until framestorm_queues_end, queues have their elements in memory of the caller's. 1 when the
// calling thread may have queues, 0 when it is none of Java's or is ending, and -1, and nothing is
// begun, when a halted thread is just at the queues itself.
JNIEXPORT int framestorm_queues_begin(void* (*allocate)(size_t), void (*release)(void*)) {
  if (AsyncQueues::is_locked()) return -1;
  memory_before = AsyncQueues::memory;
  AsyncQueues::memory = {allocate, release};
  AsyncQueues::may_read_heap = false;
  fuzzed = AsyncWalkedThread::current().java_thread();
  if (fuzzed == nullptr) return 0;
  poll_before = *fuzzed->poll_data();
  return fuzzed->is_exiting() ? 0 : 1;
}

// As if the thread came to a poll where it is.
JNIEXPORT void framestorm_queues_poll(void* ucontext) {
  AsyncContext at;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &at);
  if (fuzzed != nullptr) AsyncQueues::process(fuzzed, has_context ? &at : nullptr);
}

// As if it ended; afterwards it is as before, but for its queues.
JNIEXPORT void framestorm_queues_exit() {
  if (fuzzed == nullptr || fuzzed->is_exiting()) return;
  ends = true;
  fuzzed->set_terminated(JavaThread::_thread_exiting);
  AsyncQueues::exits(fuzzed);
  fuzzed->set_terminated(JavaThread::_not_terminated);
  ends = false;
}

// Ends the thread's queues, and the walk, which may have been abandoned anywhere.
JNIEXPORT void framestorm_queues_end() {
  if (fuzzed != nullptr) {
    if (ends) fuzzed->set_terminated(JavaThread::_not_terminated);
    if (!AsyncQueues::is_locked()) AsyncQueues::remove(fuzzed);
    // The halted thread is to be as it was, unless the VM has something for it meanwhile.
    const bool is_wanted = SafepointSynchronize::is_synchronizing() ||
                           SafepointSynchronize::is_at_safepoint() ||
                           fuzzed->handshake_state()->has_operation();
    if (!is_wanted) *fuzzed->poll_data() = poll_before;
  }
  ends = false;
  fuzzed = nullptr;
  AsyncQueues::memory = memory_before;
  AsyncQueues::may_read_heap = true;
}

}  // extern "C"
