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

#include "prims/asyncSample.hpp"

#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"
#include "code/nmethod.hpp"
#include "interpreter/interpreter.hpp"
#include "oops/method.hpp"
#include "prims/asyncMethods.hpp"
#include "runtime/frame.hpp"
#include "runtime/javaThread.hpp"

typedef AsyncStackWalker::Physical Physical;

static uintptr_t word_of(uintptr_t fp, int offset) {
  uintptr_t word = 0;
  return AsyncMethods::load(fp + offset * wordSize, &word) ? word : 0;
}

static uintptr_t bcp_of_caller(const Physical& frame) {
  return frame.interpreter ? word_of(frame.fp, frame::interpreter_frame_bcp_offset) : 0;
}

int AsyncSample::take(const AsyncWalkedThread& thread, void* ucontext, int options) {
  if (thread.java_thread() == nullptr) return ASGST_NO_THREAD;
  const int kind = AsyncStackIterator::judge(thread, options);
  if (kind <= 0) return kind;
  AsyncContext context;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &context);
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), false);
  const AsyncWalkedThread::Start start =
      thread.start(&walker, has_context ? &context : nullptr, false);
  if (start != AsyncWalkedThread::Start::started) return AsyncStackIterator::error_of(start);
  AsyncStackWalker::Frame frame;
  do {
    // Method handles' intrinsics have no bytecodes, and jump on without a poll.
    if (!walker.next(&frame)) return ASGST_NO_TOP_JAVA_FRAME;
  } while (frame.method->is_method_handle_intrinsic());
  const Physical at = walker.at();
  if (!walker.leave()) return ASGST_NO_TOP_JAVA_FRAME;
  _frame = at;
  _caller = walker.at();
  _caller_bcp = bcp_of_caller(_caller);
  _interpreted = frame;
  _left = false;
  _element = {reinterpret_cast<void*>(frame.pc), reinterpret_cast<void*>(frame.fp),
              reinterpret_cast<void*>(frame.sp), nullptr};
  return kind;
}

bool AsyncSample::may_return_to(uintptr_t pc) const {
  if (pc == _caller.pc) return true;
  if (_caller.interpreter) return Interpreter::contains(reinterpret_cast<address>(pc));
  // A caller that is going to be deoptimised is returned to elsewhere.
  return _caller.blob != nullptr && _caller.blob->is_nmethod() &&
         CodeCache::find_blob(reinterpret_cast<void*>(pc)) == _caller.blob;
}

// Whether the thread is at the poll of a return from this code; nothing of its frame is left but the
// return address.
static bool returns_from(JavaThread* thread, const CodeBlob* code, const Physical& poll) {
  if (code == nullptr || !code->is_nmethod() || poll.blob == nullptr ||
      !poll.blob->is_safepoint_stub()) {
    return false;
  }
  const address polled = thread->saved_exception_pc();
  return CodeCache::find_blob(polled) == code && code->as_nmethod()->is_at_poll_return(polled);
}

bool AsyncSample::is_still_there(const AsyncWalkedThread& thread, const AsyncContext* at) const {
  if (_left) return false;
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), false);
  if (thread.start(&walker, at, false) != AsyncWalkedThread::Start::started) return false;
  // What does not really poll may stand between two frames, which take() has passed by.
  AsyncStackWalker::Frame top;
  if (at != nullptr && !walker.next(&top)) return false;
  Physical callee = walker.at();
  do {
    callee = walker.at();
    if (!walker.leave()) return false;
  } while (walker.at().sp < _caller.sp);
  const Physical caller = walker.at();
  if (caller.sp != _caller.sp || caller.pc != _caller.pc || bcp_of_caller(caller) != _caller_bcp) {
    return false;
  }
  if (_frame.interpreter) {
    // A method that is being entered has no frame yet, nor does it poll before it has one.
    const bool entered = at != nullptr && callee.pc == _frame.pc && callee.sp == _frame.sp;
    if (entered && top.method == _interpreted.method) return true;
    return callee.interpreter &&
           word_of(callee.fp, frame::interpreter_frame_method_offset) == p2u(_interpreted.method);
  }
  return callee.blob == _frame.blob || returns_from(thread.java_thread(), _frame.blob, callee);
}

AsyncStackIterator::Source AsyncSample::tell(const AsyncWalkedThread& thread,
                                             const AsyncContext* at, int options,
                                             bool whole) const {
  AsyncStackIterator::Source source = tell_now(thread, options);
  if (whole) source.walker.give_frozen_frames();
  if (!is_still_there(thread, at)) source.error = ASGST_SAMPLE_LEFT;
  return source;
}

AsyncStackIterator::Source AsyncSample::tell_now(const AsyncWalkedThread& thread,
                                                 int options) const {
  const bool c_frames = (options & ASGST_INCLUDE_NON_JAVA_FRAMES) != 0;
  AsyncStackIterator::Source source(AsyncStackIterator::walker_of(thread, c_frames, options));
  if (!source.walker.start_below(_frame, _caller, !_frame.interpreter)) {
    source.error = ASGST_SAMPLE_LEFT;
  }
  source.has_first = _frame.interpreter;
  source.first = _interpreted;
  return source;
}

// For fuzzers: what a queue's handler would be told of the calling thread, if it polled where it is.
// As ASGST_RunWithIterator; async-signal-safe.
extern "C" JNIEXPORT int framestorm_run_with_sample(void* ucontext, int options,
                                                    ASGST_IteratorHandler fun, void* argument) {
  if (fun == nullptr) return ASGST_INVALID_ARGUMENT;
  AsyncSample sample;
  const AsyncWalkedThread thread = AsyncWalkedThread::current();
  const int kind = sample.take(thread, ucontext, options);
  if (kind > 0) AsyncStackIterator::run(sample.tell_now(thread, options), fun, argument);
  return kind;
}
