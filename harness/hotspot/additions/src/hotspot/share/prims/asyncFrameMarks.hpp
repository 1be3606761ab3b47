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

#ifndef SHARE_PRIMS_ASYNCFRAMEMARKS_HPP
#define SHARE_PRIMS_ASYNCFRAMEMARKS_HPP

#include "memory/allStatic.hpp"
#include "runtime/atomic.hpp"
#include "utilities/globalDefinitions.hpp"

class AsyncStackWalker;
class AsyncWalkedThread;
class ContinuationEntry;
class JavaThread;
struct AsyncContext;
struct AsyncMarks;

// The frame marks of profile2.h.
//
// While a frame is on the stack its callers stay as they are. Who leaves it comes to a stack
// watermark's barrier (JEP 376) before its caller goes on: it polls, since the thread's poll word is
// set to an address in the marked frame, or an exception comes to the caller, or the frame is replaced
// or frozen. There the mark is taken away and its handler called. So walks may end where a marked
// frame's caller stands: what comes from there on is what there was when the mark was set.
class AsyncFrameMarks : AllStatic {
  static volatile int _live;

  static uintptr_t lowest_of(const JavaThread* thread);
  static void leave(JavaThread* thread, bool still_there);
  static void leave_below(JavaThread* thread, uintptr_t sp);
  static void note_exception(const JavaThread* thread, address return_address);
  static void forget(AsyncMarks* marks);

  friend class AsyncMarkRegistry;

 public:
  static bool any() { return Atomic::load(&_live) != 0; }

  // What the VM calls on the thread itself, its last Java frame set where it has one.
  //
  // The thread's poll word that has the newest marked frame poll when it returns; ~0: none.
  static uintptr_t lowest(const JavaThread* thread) {
    return any() ? lowest_of(thread) : ~uintptr_t(0);
  }
  // The topmost Java frame is about to be left ...
  static void before_unwind(JavaThread* thread) {
    if (any()) leave(thread, true);
  }
  // ... or the one that it called has been.
  static void after_unwind(JavaThread* thread) {
    if (any()) leave(thread, false);
  }
  // All frames of the innermost continuation are about to be frozen.
  static void freezes(JavaThread* thread, const ContinuationEntry* entry) {
    if (any()) leave_below(thread, p2u(entry));
  }
  // An exception leaves a compiled frame, to this return address. The last Java frame is not set.
  static void unwinds(const JavaThread* thread, address return_address) {
    if (any()) note_exception(thread, return_address);
  }
  // A call into Java has come back; `has_frames`: from where there are Java frames.
  static void called(JavaThread* thread, bool has_frames) {
    if (any() && !has_frames) leave_below(thread, UINTPTR_MAX);
  }
  // The Thread is going to be freed; AsyncThreads does not have it any more.
  static void remove(AsyncMarks* marks) { forget(marks); }

  // Has a walk of the thread's stack end at its newest mark. Async-signal-safe.
  static void end_at_newest(const AsyncWalkedThread& thread, AsyncStackWalker* walker);

  // For fuzzers, whose threads are halted anywhere. Where such a one is taken to poll, down to the frame
  // that has `sp` (UINTPTR_MAX: it has no frames); null elsewhere.
  struct Standing {
    const AsyncContext* context;  // null: at its last Java frame
    uintptr_t sp;
  };
  static const Standing* standing;
  static bool is_locked();
  // The thread begins without marks; it has those it had again, and no others, after the second.
  static void set_aside(JavaThread* thread);
  static void take_back(JavaThread* thread);
  static void end_all(JavaThread* thread);
  // Has so many marks ready, so that none is allocated for.
  static void reserve(int count);
};

#endif  // SHARE_PRIMS_ASYNCFRAMEMARKS_HPP
