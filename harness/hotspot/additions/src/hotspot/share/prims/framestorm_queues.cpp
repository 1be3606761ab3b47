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

#include "prims/asyncFrameMarks.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncThreads.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "runtime/handshake.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/safepoint.hpp"
#include "runtime/safepointMechanism.inline.hpp"
#include "runtime/stubRoutines.hpp"

// For fuzzers, which make all calls of safepoint queues and frame marks in a signal handler on a halted
// thread: what happens to these elsewhere. One thread at a time.

static JavaThread* fuzzed = nullptr;
static bool ends = false;
static AsyncQueues::Memory memory_before;
static SafepointMechanism::ThreadData poll_before;
static AsyncContext halted_at;
static AsyncFrameMarks::Standing standing;

static bool is_locked() {
  return AsyncQueues::is_locked() || AsyncFrameMarks::is_locked() || AsyncThreads::is_locked();
}

extern "C" {

// Not in a signal handler, before so many marks are registered at once in one.
JNIEXPORT void framestorm_queues_reserve_marks(int count) { AsyncFrameMarks::reserve(count); }

// Until framestorm_queues_end, queues have their elements in memory of the caller's, and the thread,
// which stands at `ucontext`, has no marks but what it gets. 1 when the calling thread may have queues
// and marks, 0 when it is none of Java's or is ending, and -1, and nothing is begun, when a halted
// thread is just at them itself.
JNIEXPORT int framestorm_queues_begin(void* (*allocate)(size_t), void (*release)(void*),
                                      void* ucontext) {
  if (is_locked()) return -1;
  memory_before = AsyncQueues::memory;
  AsyncQueues::memory = {allocate, release};
  AsyncQueues::may_read_heap = false;
  fuzzed = AsyncWalkedThread::current().java_thread();
  if (fuzzed == nullptr) return 0;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &halted_at);
  standing = {has_context ? &halted_at : nullptr, 0};
  AsyncFrameMarks::standing = &standing;
  AsyncFrameMarks::set_aside(fuzzed);
  poll_before = *fuzzed->poll_data();
  return fuzzed->is_exiting() ? 0 : 1;
}

// As if the thread came to a poll where it is.
JNIEXPORT void framestorm_queues_poll(void* ucontext) {
  AsyncContext at;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &at);
  if (fuzzed != nullptr) AsyncQueues::process(fuzzed, has_context ? &at : nullptr);
}

// The poll word that it gets at a poll; ~0 when no frame is marked.
JNIEXPORT uintptr_t framestorm_queues_poll_word() {
  return fuzzed == nullptr ? ~uintptr_t(0) : AsyncFrameMarks::lowest(fuzzed);
}

// As if it had come down to the frame that has `sp`, and that polled for its return.
JNIEXPORT void framestorm_queues_return(void* sp) {
  if (fuzzed == nullptr) return;
  standing.sp = p2u(sp);
  AsyncFrameMarks::before_unwind(fuzzed);
  standing.sp = 0;
}

// As if an exception had come to that frame.
JNIEXPORT void framestorm_queues_unwind(void* sp) {
  if (fuzzed == nullptr) return;
  standing.sp = p2u(sp);
  AsyncFrameMarks::after_unwind(fuzzed);
  standing.sp = 0;
}

// Where its innermost continuation begins; null when it runs none.
JNIEXPORT void* framestorm_queues_continuation() {
  return fuzzed == nullptr ? nullptr : fuzzed->last_continuation();
}

// As if that yielded.
JNIEXPORT void framestorm_queues_freeze() {
  if (fuzzed == nullptr || fuzzed->last_continuation() == nullptr) return;
  AsyncFrameMarks::freezes(fuzzed, fuzzed->last_continuation());
}

// As if an exception were on its way to frames that are frozen.
JNIEXPORT void framestorm_queues_throw_to_frozen() {
  if (fuzzed != nullptr) AsyncFrameMarks::unwinds(fuzzed, StubRoutines::cont_returnBarrier());
}

// As if it came back from its outermost Java frame.
JNIEXPORT void framestorm_queues_leave_java() {
  if (fuzzed == nullptr) return;
  standing.sp = UINTPTR_MAX;
  AsyncFrameMarks::called(fuzzed, /*has_frames=*/false);
  standing.sp = 0;
}

// As if it ended; afterwards it is as before, but for its queues and marks.
JNIEXPORT void framestorm_queues_exit() {
  if (fuzzed == nullptr || fuzzed->is_exiting()) return;
  standing.sp = UINTPTR_MAX;
  ends = true;
  fuzzed->set_terminated(JavaThread::_thread_exiting);
  AsyncQueues::exits(fuzzed);
  fuzzed->set_terminated(JavaThread::_not_terminated);
  ends = false;
  AsyncFrameMarks::end_all(fuzzed);
  standing.sp = 0;
}

// Ends the thread's queues and marks, and the walk, which may have been abandoned anywhere.
JNIEXPORT void framestorm_queues_end() {
  if (fuzzed != nullptr) {
    if (ends) fuzzed->set_terminated(JavaThread::_not_terminated);
    if (!is_locked()) {
      AsyncQueues::remove(fuzzed);
      AsyncFrameMarks::take_back(fuzzed);
    }
    // The halted thread is to be as it was, unless the VM has something for it meanwhile.
    const bool is_wanted = SafepointSynchronize::is_synchronizing() ||
                           SafepointSynchronize::is_at_safepoint() ||
                           fuzzed->handshake_state()->has_operation();
    if (!is_wanted) *fuzzed->poll_data() = poll_before;
  }
  AsyncFrameMarks::standing = nullptr;
  ends = false;
  fuzzed = nullptr;
  AsyncQueues::memory = memory_before;
  AsyncQueues::may_read_heap = true;
}

}  // extern "C"
