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

#ifndef SHARE_PRIMS_ASYNCSAMPLE_HPP
#define SHARE_PRIMS_ASYNCSAMPLE_HPP

#include "prims/asyncStackIterator.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncWalkedThread.hpp"

class JavaThread;

// Where a thread was, noted in a signal handler, and told at its next poll.
//
// Noted is the topmost Java frame and where it returns to: whatever the thread did until a poll, it
// did in that frame and those it called, since returns poll. So at the poll the frame is still on
// the stack, or it is the one that is returning: in both cases what it returns to is on the stack at
// the same place. The frame's own memory is not looked at: when a compiled method polls for its
// return its frame is gone.
//
// What leaves a frame without a poll is an exception (noted, see threw), and code behind the poll of
// a return, or before a method's frame. What then runs may stand where the frame stood, so the frame
// has to be of the same code, and to return to the same place: the bytecode too in the interpreter,
// where all calls have one return address. If that holds, the trace told is the one there was.
class AsyncSample {
 public:
  // Async-signal-safe; of the thread itself or of one that is stopped. Kind or error, as those of
  // ASGST_RunWithIterator.
  int take(const AsyncWalkedThread& thread, void* ucontext, int options);
  void* argument() const { return _element.arg; }
  ASGST_QueueElement* element() { return &_element; }

  // An exception leaves a frame, by this return address: it may be the noted one.
  void note_exception(uintptr_t return_address) {
    if (may_return_to(return_address)) _left = true;
  }

  // What an iterator gives of it, on the thread, which is at a poll; `at`: where that is, unless the
  // thread's last Java frame says so; `whole`: with frames that are frozen, in the heap.
  AsyncStackIterator::Source tell(const AsyncWalkedThread& thread, const AsyncContext* at,
                                  int options, bool whole) const;
  // The same while the thread still is where it was noted.
  AsyncStackIterator::Source tell_now(const AsyncWalkedThread& thread, int options) const;

 private:
  bool may_return_to(uintptr_t pc) const;
  bool is_still_there(const AsyncWalkedThread& thread, const AsyncContext* at) const;

  ASGST_QueueElement _element;  // for the profiler: it may change it
  AsyncStackWalker::Physical _frame;
  AsyncStackWalker::Physical _caller;
  uintptr_t _caller_bcp;                 // 0: not interpreted
  AsyncStackWalker::Frame _interpreted;  // what there is of an interpreted frame
  volatile bool _left;
};

#endif  // SHARE_PRIMS_ASYNCSAMPLE_HPP
