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

#include "prims/asyncFrameMarks.hpp"

#include "code/codeBlob.hpp"
#include "prims/asyncQueues.hpp"
#include "prims/asyncStackIterator.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncThreads.hpp"
#include "prims/asyncTickets.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "profile2.h"
#include "runtime/continuation.hpp"
#include "runtime/continuationEntry.hpp"
#include "runtime/frame.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/safepointMechanism.inline.hpp"

typedef AsyncStackWalker::Physical Physical;

volatile int AsyncFrameMarks::_live = 0;
const AsyncFrameMarks::Standing* AsyncFrameMarks::standing = nullptr;

namespace {

volatile int lock_word = 0;

// Never held while a handler runs.
struct Lock : AsyncSpinLock {
  Lock() : AsyncSpinLock(&lock_word) {}
};

// Set, moved and taken away by its thread only.
struct Mark {
  volatile uint64_t number;  // 0: ended
  uint64_t place;
  Mark* next;  // of the thread
  JavaThread* thread;
  int options;
  ASGST_FrameMarkHandler handler;
  void* argument;

  volatile uintptr_t sp;  // in the marked frame; 0: it marks none
  uintptr_t returns_at;   // where that frame's return address stands
  Physical caller;        // the frame it returns to
  bool left;              // it has been left, and the handler is still to be told
};

typedef AsyncTickets<Mark> Tickets;

}  // namespace

// The marks of a thread. Never freed, but given to others.
struct AsyncMarks {
  Mark* first;
  Mark* volatile newest;  // of those that mark a frame: for signal handlers
  uintptr_t told;         // while handlers run: frames up to there have been left
  AsyncMarks* next;       // of those that are free
};

// With the lock.
class AsyncMarkRegistry : AllStatic {
  static AsyncMarks* _free;

 public:
  static AsyncMarks* marks_of(const AsyncWalkedThread& thread) {
    if (thread.marks() != nullptr) return thread.marks();
    AsyncMarks* marks = _free;
    if (marks != nullptr) {
      _free = marks->next;
    } else {
      marks = NEW_C_HEAP_OBJ_RETURN_NULL(AsyncMarks, mtThread);
      if (marks == nullptr) return nullptr;
    }
    *marks = {};
    if (AsyncThreads::set_marks(thread.thread(), marks)) return marks;
    release(marks);
    return nullptr;
  }
  static void release(AsyncMarks* marks) {
    marks->next = _free;
    _free = marks;
  }

  // Null when there is no place. Of several marks of one frame the first counts.
  static Mark* add(AsyncMarks* marks) {
    Mark* const mark = Tickets::claim();
    if (mark == nullptr) return nullptr;
    Mark** link = &marks->first;
    while (*link != nullptr) link = &(*link)->next;
    *link = mark;
    Atomic::inc(&AsyncFrameMarks::_live);
    return mark;
  }
  static void publish(AsyncMarks* marks) {
    Mark* newest = nullptr;
    for (Mark* mark = marks->first; mark != nullptr; mark = mark->next) {
      const bool counts = mark->number != 0 && mark->sp != 0 && !mark->left;
      if (counts && (newest == nullptr || mark->returns_at < newest->returns_at)) newest = mark;
    }
    Atomic::release_store(&marks->newest, newest);
  }
  // Gives back those that have ended: on the thread, or when it has ended.
  static void settle(AsyncMarks* marks) {
    publish(marks);
    for (Mark** link = &marks->first; *link != nullptr;) {
      Mark* const mark = *link;
      if (mark->number != 0) {
        link = &mark->next;
        continue;
      }
      *link = mark->next;
      Tickets::release(mark);
      Atomic::dec(&AsyncFrameMarks::_live);
    }
  }
  static void end_all(AsyncMarks* marks) {
    for (Mark* mark = marks->first; mark != nullptr; mark = mark->next) Tickets::end(mark);
    settle(marks);
  }
};

AsyncMarks* AsyncMarkRegistry::_free = nullptr;

typedef AsyncMarkRegistry Registry;

namespace {

AsyncMarks* marks_of(const void* thread) {
  AsyncThreads::Entry entry;
  return AsyncThreads::find_by_thread(thread, &entry) ? entry.marks : nullptr;
}

bool is_java(const Physical& frame) {
  return frame.interpreter || (frame.blob != nullptr && frame.blob->is_nmethod());
}

// Of a Java frame.
uintptr_t return_slot(const Physical& frame) {
  if (frame.interpreter) return frame.fp + frame::return_addr_offset * wordSize;
  return frame.sp + (frame.blob->frame_size() - 1) * wordSize;
}

// Starts at the top of the thread's stack.
bool start_at_top(const AsyncWalkedThread& thread, AsyncStackWalker* walker) {
  const AsyncFrameMarks::Standing* const at = AsyncFrameMarks::standing;
  return thread.start(walker, at == nullptr ? nullptr : at->context, false) ==
         AsyncWalkedThread::Start::started;
}

// The same. A thread that was halted anywhere may stand between two frames: what next() gives tells.
bool start_at_frame(const AsyncWalkedThread& thread, AsyncStackWalker* walker) {
  AsyncStackWalker::Frame top;
  return start_at_top(thread, walker) &&
         (AsyncFrameMarks::standing == nullptr || walker->next(&top));
}

// Starts where the thread polls.
bool start(const AsyncWalkedThread& thread, AsyncStackWalker* walker) {
  if (!start_at_frame(thread, walker)) return false;
  if (AsyncFrameMarks::standing == nullptr) return true;
  while (walker->at().sp < AsyncFrameMarks::standing->sp) {
    if (!walker->leave()) return false;
  }
  return true;
}

// The frames that stay when those below `sp` are left.
AsyncStackIterator::Source staying(const AsyncWalkedThread& thread, uintptr_t sp, int options) {
  const bool c_frames = (options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0;
  AsyncStackIterator::Source source(AsyncStackIterator::walker_of(thread, c_frames, options));
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), false);
  source.error = ASGST_NO_TOP_JAVA_FRAME;
  if (sp == UINTPTR_MAX || !start_at_frame(thread, &walker)) return source;
  if (AsyncQueues::may_read_heap) source.walker.give_frozen_frames();
  if (walker.at().sp >= sp) {
    if (start_at_top(thread, &source.walker)) source.error = 0;
    return source;
  }
  Physical callee = walker.at();
  do {
    callee = walker.at();
    if (!walker.leave()) return source;
  } while (walker.at().sp < sp);
  if (!source.walker.start_below(callee, walker.at(), false)) return source;
  // The outermost Java frame stands before a stub that has called it.
  AsyncStackWalker ahead = source.walker;
  AsyncStackWalker::Frame frame;
  const bool ends = !ahead.next(&frame) && ahead.stop() == AsyncStackWalker::Stop::end;
  if (!ends || ahead.left_out_frozen_frames()) source.error = 0;
  return source;
}

// Takes away all marks of frames that return at `last` or below, and tells their handlers, the newest
// first. `stay`: the sp that the others begin with.
void tell(JavaThread* thread, AsyncMarks* marks, uintptr_t last, uintptr_t stay) {
  AsyncWalkedThread walked;
  if (marks->told != 0 || !AsyncWalkedThread::of(thread, &walked)) return;
  marks->told = last;
  for (;;) {
    Mark* mark = nullptr;
    Mark told;
    {
      Lock lock;
      for (Mark* each = marks->first; each != nullptr; each = each->next) {
        const bool is_left = each->left || each->returns_at <= last;
        if (each->number == 0 || each->sp == 0 || !is_left) continue;
        if (mark == nullptr || each->returns_at < mark->returns_at) mark = each;
      }
      if (mark == nullptr) break;
      mark->sp = 0;
      mark->left = false;
      told = *mark;
      Registry::publish(marks);
    }
    const AsyncStackIterator::Source source = staying(walked, stay, told.options);
    AsyncStackIterator::run(source, [&](ASGST_Iterator* iterator) {
      ASGST_FrameMark* const ticket =
          static_cast<ASGST_FrameMark*>(Tickets::ticket_of(mark, told.number));
      told.handler(ticket, iterator, told.argument);
    });
  }
  marks->told = 0;
}

bool is_left_behind(const AsyncMarks* marks, uintptr_t last) {
  const Mark* const newest = marks->newest;
  if (newest != nullptr && newest->returns_at <= last) return true;
  for (const Mark* mark = marks->first; mark != nullptr; mark = mark->next) {
    if (mark->left) return true;
  }
  return false;
}

}  // namespace

uintptr_t AsyncFrameMarks::lowest_of(const JavaThread* thread) {
  AsyncMarks* const marks = marks_of(thread);
  if (marks == nullptr) return UINTPTR_MAX;
  Lock lock;
  Registry::settle(marks);
  // A return polls with sp at the return address, or with the frame pointer, which is a word below;
  // callees are lower.
  const Mark* const newest = marks->newest;
  return newest == nullptr ? UINTPTR_MAX : newest->returns_at - 2 * wordSize;
}

// `still_there`: the topmost Java frame is going to be left; otherwise it is what stays.
void AsyncFrameMarks::leave(JavaThread* thread, bool still_there) {
  AsyncMarks* const marks = marks_of(thread);
  if (marks == nullptr || !is_left_behind(marks, UINTPTR_MAX)) return;
  AsyncWalkedThread walked;
  if (!AsyncWalkedThread::of(thread, &walked)) return;
  AsyncStackWalker walker(thread, walked.low(), walked.high(), false);
  // What cannot be told has been left.
  uintptr_t last = UINTPTR_MAX;
  bool found = start(walked, &walker);
  if (found && still_there) {
    const CodeBlob* const blob = walker.at().blob;
    const bool replaced =
        blob != nullptr && (blob->is_deoptimization_stub() || blob->is_uncommon_trap_stub());
    found = !replaced || walker.leave();
    // A stub that comes back from native code leaves no Java frame.
    if (found && !is_java(walker.at())) return;
    if (found) last = return_slot(walker.at());
  } else if (found) {
    while (found && !is_java(walker.at())) found = walker.leave();
    if (found) last = walker.at().sp;
  }
  if (is_left_behind(marks, last)) tell(thread, marks, last, last);
}

void AsyncFrameMarks::leave_below(JavaThread* thread, uintptr_t sp) {
  AsyncMarks* const marks = marks_of(thread);
  if (marks != nullptr && is_left_behind(marks, sp)) tell(thread, marks, sp, sp);
}

void AsyncFrameMarks::note_exception(const JavaThread* thread, address return_address) {
  if (!Continuation::is_return_barrier_entry(return_address)) return;
  AsyncMarks* const marks = marks_of(thread);
  if (marks == nullptr) return;
  // The caller is thawed where the frame was, so that it cannot be told by its place any more.
  Lock lock;
  for (Mark* mark = marks->first; mark != nullptr; mark = mark->next) {
    if (mark->sp != 0 && mark->caller.frozen) mark->left = true;
  }
  Registry::publish(marks);
}

void AsyncFrameMarks::forget(AsyncMarks* marks) {
  // Also when there are none: somebody may just register one, and look at the thread.
  Lock lock;
  if (marks == nullptr) return;
  Registry::end_all(marks);
  Registry::release(marks);
}

void AsyncFrameMarks::end_at_newest(const AsyncWalkedThread& thread, AsyncStackWalker* walker) {
  if (thread.marks() == nullptr) return;
  const Mark* const mark = Atomic::load_acquire(&thread.marks()->newest);
  const uint64_t number = mark == nullptr ? 0 : Atomic::load_acquire(&mark->number);
  if (number != 0) walker->end_before(mark->caller.sp, Tickets::ticket_of(mark, number));
}

// Of the one thread that is fuzzed, and what it had before.
static AsyncMarks of_fuzzer;
static AsyncMarks* aside = nullptr;

bool AsyncFrameMarks::is_locked() { return Atomic::load(&lock_word) != 0; }

void AsyncFrameMarks::set_aside(JavaThread* thread) {
  aside = marks_of(thread);
  of_fuzzer = {};
  AsyncThreads::set_marks(thread, &of_fuzzer);
}

void AsyncFrameMarks::take_back(JavaThread* thread) {
  end_all(thread);
  AsyncThreads::set_marks(thread, aside);
}

void AsyncFrameMarks::end_all(JavaThread* thread) {
  Lock lock;
  Registry::end_all(marks_of(thread));
}

void AsyncFrameMarks::reserve(int count) {
  Lock lock;
  Mark* claimed = nullptr;
  for (int i = 0; i < count; i++) {
    Mark* const mark = Tickets::claim();
    if (mark == nullptr) break;
    mark->next = claimed;
    claimed = mark;
  }
  while (claimed != nullptr) {
    Mark* const next = claimed->next;
    Tickets::release(claimed);
    claimed = next;
  }
}

namespace {

// Where a frame is, to be marked.
struct Target {
  uintptr_t returns_at;
  Physical caller;
};

// The Java frame that `sp` is in. A frame that may not poll any more when it returns is none: the
// topmost one, and what has been left.
bool find_frame(const AsyncWalkedThread& thread, uintptr_t sp, Target* target) {
  const uintptr_t told = thread.marks()->told;
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), false);
  if (!start(thread, &walker)) return false;
  for (bool is_first = true;;) {
    const Physical frame = walker.at();
    if (!walker.leave()) return false;
    if (walker.at().sp <= sp) {
      is_first = is_first && !is_java(frame);
      continue;
    }
    if (!is_java(frame) || sp < frame.sp) return false;
    *target = {return_slot(frame), walker.at()};
    const bool enters_continuation =
        !frame.interpreter && frame.blob->code_contains(ContinuationEntry::entry_pc());
    const bool polls = told == 0 ? !is_first : target->returns_at > told;
    return polls && !enters_continuation;
  }
}

}  // namespace

extern "C" {

JNIEXPORT ASGST_FrameMark* JNICALL ASGST_RegisterFrameMark(JNIEnv* env,
                                                           ASGST_FrameMarkHandler handler,
                                                           int options, void* arg) {
  if (handler == nullptr) return nullptr;
  Lock lock;
  // One that is found is not freed before the lock is given back, see AsyncFrameMarks::forget.
  AsyncWalkedThread thread;
  if (env == nullptr) {
    thread = AsyncWalkedThread::current();
  } else {
    AsyncWalkedThread::with_env(env, &thread);
  }
  if (thread.java_thread() == nullptr || thread.java_thread()->is_exiting()) return nullptr;
  AsyncMarks* const marks = Registry::marks_of(thread);
  Mark* const mark = marks == nullptr ? nullptr : Registry::add(marks);
  if (mark == nullptr) return nullptr;
  mark->thread = thread.java_thread();
  mark->options = options;
  mark->handler = handler;
  mark->argument = arg;
  Tickets::open(mark);
  return static_cast<ASGST_FrameMark*>(Tickets::ticket_of(mark, mark->number));
}

JNIEXPORT void JNICALL ASGST_MoveFrameMark(ASGST_FrameMark* ticket, void* new_sp) {
  const AsyncWalkedThread thread = AsyncWalkedThread::current();
  if (thread.marks() == nullptr) return;
  Target target;
  const bool found = new_sp != nullptr && find_frame(thread, p2u(new_sp), &target);
  Lock lock;
  Mark* const mark = Tickets::resolve(ticket);
  if (mark == nullptr || mark->thread != thread.java_thread()) return;
  // A signal handler finds it where it was, nowhere, or where it comes to.
  mark->sp = 0;
  mark->left = false;
  Registry::publish(thread.marks());
  if (!found) return;
  mark->returns_at = target.returns_at;
  mark->caller = target.caller;
  mark->sp = p2u(new_sp);
  Registry::publish(thread.marks());
  // The thread itself sets its poll word to what marks need.
  SafepointMechanism::arm_local_poll_release(thread.java_thread());
}

JNIEXPORT void* JNICALL ASGST_GetFrameMarkStackPointer(ASGST_FrameMark* ticket) {
  const Mark* const mark = Tickets::resolve(ticket);
  return mark == nullptr || mark->left ? nullptr : reinterpret_cast<void*>(mark->sp);
}

JNIEXPORT void JNICALL ASGST_RemoveFrameMark(ASGST_FrameMark* ticket) {
  Lock lock;
  Mark* const mark = Tickets::resolve(ticket);
  if (mark == nullptr) return;
  Tickets::end(mark);
  // Walks end at the others from now on.
  AsyncMarks* const marks = marks_of(mark->thread);
  if (marks != nullptr) Registry::publish(marks);
  // The thread gives it back, when none of its signal handlers can be in it.
  SafepointMechanism::arm_local_poll_release(mark->thread);
}

}  // extern "C"
