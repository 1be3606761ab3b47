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

#include "profile.h"

#include "prims/asyncCrashProtection.hpp"
#include "prims/asyncMethods.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "prims/jvmtiExport.hpp"

// AsyncGetStackTrace (JEP 435): a thin layer over AsyncStackWalker.

static_assert(sizeof(ASGST_CallFrame) == 16, "as large as a frame of AsyncGetCallTrace");

namespace {

struct Walk {
  ASGST_CallTrace* trace;
  jint depth;
  uint32_t options;
  const AsyncContext* context;  // null when there is none
  const AsyncWalkedThread* thread;
  // What the caller accepts.
  uint8_t kinds;
  jint states;

  bool has(uint32_t option) const { return (options & option) != 0; }
};

// Copies frames until the walk ends, or depth is reached.
void copy_frames(const Walk& walk, AsyncStackWalker* walker) {
  ASGST_CallTrace* const trace = walk.trace;
  AsyncStackWalker::Frame frame;
  jint count = 0;
  while (count < walk.depth && walker->next(&frame)) {
    ASGST_CallFrame* const to = &trace->frames[count++];
    if (frame.type == AsyncStackWalker::FrameType::non_java) {
      to->non_java_frame.type = ASGST_FRAME_CPP;
      to->non_java_frame.pc = frame.in_code_cache ? nullptr : reinterpret_cast<void*>(frame.pc);
      continue;
    }
    to->java_frame.type = static_cast<uint8_t>(frame.type);
    to->java_frame.comp_level = static_cast<int8_t>(frame.comp_level);
    to->java_frame.bci =
        frame.bci < 0 || frame.bci > 65534 ? 65535 : static_cast<uint16_t>(frame.bci);
    to->java_frame.method_id = AsyncMethods::jmethod_id_or_null(frame.method);
  }
  trace->num_frames = count;
  const bool frozen =
      walker->stop() == AsyncStackWalker::Stop::end && walker->left_out_frozen_frames();
  trace->frame_info =
      const_cast<char*>(frozen ? ASGST_FRAMES_FROZEN : AsyncStackWalker::explain(walker->stop()));
}

// Of a thread that has no usable frame to start from.
jint no_start(const AsyncWalkedThread& thread) {
  const bool java = thread.java_thread() != nullptr && thread.in_java();
  return java ? ASGST_UNKNOWN_JAVA : ASGST_UNKNOWN_NOT_JAVA;
}

// A thread that is not in Java code, or deoptimises, and will show C/C++ frames only.
void walk_c(const Walk& walk) {
  if (walk.context == nullptr) {
    walk.trace->num_frames = no_start(*walk.thread);
    return;
  }
  AsyncStackWalker walker(walk.thread->java_thread(), walk.thread->low(), walk.thread->high(),
                          true);
  if (walk.has(ASGST_END_AT_CONTINUATION)) walker.end_at_continuation();
  if (!walker.start_at_context(*walk.context)) {
    walk.trace->num_frames =
        walk.thread->thread() == nullptr ? ASGST_NO_THREAD : no_start(*walk.thread);
    walk.trace->frame_info = const_cast<char*>(AsyncStackWalker::explain(walker.stop()));
    return;
  }
  copy_frames(walk, &walker);
}

// Sets kind, and num_frames when it is none that the caller accepts.
bool accepts_kind(const Walk& walk, int kind) {
  walk.trace->kind = static_cast<uint8_t>(kind);
  if (walk.kinds == 0 || (walk.kinds & kind) != 0) return true;
  walk.trace->num_frames = ASGST_WRONG_KIND;
  return false;
}

void walk_java(const Walk& walk) {
  const AsyncWalkedThread& thread = *walk.thread;
  const bool c_frames = walk.has(ASGST_INCLUDE_C_FRAMES);
  const bool java = thread.in_java();
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), c_frames);
  if (walk.has(ASGST_END_AT_CONTINUATION)) walker.end_at_continuation();
  switch (thread.start(&walker, walk.context, c_frames)) {
    case AsyncWalkedThread::Start::no_java_frame:
      walk.trace->num_frames = ASGST_NO_JAVA_FRAME;
      return;
    case AsyncWalkedThread::Start::unknown_state:
      walk.trace->num_frames = ASGST_UNKNOWN_STATE;
      return;
    case AsyncWalkedThread::Start::failed:
      walk.trace->num_frames = no_start(thread);
      walk.trace->frame_info = const_cast<char*>(AsyncStackWalker::explain(walker.stop()));
      return;
    case AsyncWalkedThread::Start::started:
      break;
  }
  copy_frames(walk, &walker);
  const bool stopped =
      walker.stop() != AsyncStackWalker::Stop::none && walker.stop() != AsyncStackWalker::Stop::end;
  if (walk.trace->num_frames == 0 && stopped) {
    walk.trace->num_frames = java ? ASGST_NOT_WALKABLE_JAVA : ASGST_UNKNOWN_NOT_JAVA;
  }
}

void walk_thread(const Walk& walk) {
  const AsyncWalkedThread& thread = *walk.thread;
  ASGST_CallTrace* const trace = walk.trace;
  const bool all_threads = walk.has(ASGST_INCLUDE_NON_JAVA_THREADS);
  trace->env_id = static_cast<JNIEnv*>(thread.env());

  if (thread.java_thread() == nullptr) {
    trace->state = -1;
    if (!all_threads) {
      trace->num_frames = thread.thread() == nullptr ? ASGST_NO_THREAD : ASGST_THREAD_NOT_JAVA;
    } else if (accepts_kind(walk, thread.kind())) {
      walk_c(walk);
    }
    return;
  }
  switch (thread.refusal(walk.has(ASGST_WALK_DURING_UNSAFE_STATES))) {
    case AsyncWalkedThread::Refusal::none:
      break;
    case AsyncWalkedThread::Refusal::no_thread:
      trace->num_frames = ASGST_NO_THREAD;
      return;
    case AsyncWalkedThread::Refusal::exiting:
      trace->num_frames = ASGST_THREAD_EXIT;
      return;
    case AsyncWalkedThread::Refusal::deoptimising:
      trace->state = -1;
      if (!accepts_kind(walk, ASGST_DEOPT_TRACE)) return;
      if (all_threads) {
        walk_c(walk);
      } else {
        trace->num_frames = ASGST_DEOPT;
      }
      return;
    case AsyncWalkedThread::Refusal::collecting:
      trace->state = -1;
      if (accepts_kind(walk, ASGST_GC_TRACE)) trace->num_frames = ASGST_GC_ACTIVE;
      return;
    case AsyncWalkedThread::Refusal::at_safepoint:
      trace->num_frames = ASGST_UNSAFE_STATE;
      return;
  }
  if (!JvmtiExport::should_post_class_load()) {
    trace->num_frames = ASGST_NO_CLASS_LOAD;
    return;
  }
  if (!accepts_kind(walk, ASGST_JAVA_TRACE)) return;
  trace->state = thread.jvmti_state();
  if (walk.states != 0 && (walk.states & trace->state) == 0) {
    trace->num_frames = ASGST_WRONG_STATE;
    return;
  }
  walk_java(walk);
}

enum class Found : uint8_t { no, other_thread, calling_thread };

void walk_and_protect(ASGST_CallTrace* trace, jint depth, uint32_t options,
                      const AsyncContext* context, AsyncWalkedThread* thread, Found found,
                      const void* caller) {
  const Walk walk = {
      trace,       trace->frames == nullptr ? 0 : depth, options, context, thread, trace->kind,
      trace->state};
  trace->env_id = nullptr;
  trace->num_frames = ASGST_NO_THREAD;
  trace->kind = ASGST_UNKNOWN_TRACE;
  trace->state = -1;
  trace->frame_info = nullptr;
  if (!AsyncCrashProtection::faults_arrive(caller)) {
    trace->num_frames = ASGST_FAULTS_BLOCKED;
    return;
  }
  if (found == Found::no) {
    // A thread that the VM does not know: its stack cannot be, either.
    if (context == nullptr || !walk.has(ASGST_INCLUDE_NON_JAVA_THREADS)) {
      if (walk.has(ASGST_WALK_SAME_THREAD)) trace->num_frames = ASGST_THREAD_NOT_JAVA;
      return;
    }
    thread->assume_stack(context->sp);
  }
  if (found == Found::calling_thread) {
    walk_thread(walk);
    return;
  }
  const auto body = [](void* argument) { walk_thread(*static_cast<const Walk*>(argument)); };
  if (!AsyncCrashProtection::call(body, const_cast<Walk*>(&walk))) {
    trace->num_frames = ASGST_CONTAINED_FAULT;
  }
}

Found find_current(AsyncWalkedThread* thread) {
  *thread = AsyncWalkedThread::current();
  return thread->thread() == nullptr ? Found::no : Found::calling_thread;
}

void walk_of_thread_id(ASGST_CallTrace* trace, jint depth, void* ucontext, uint32_t options,
                       jlong os_thread_id, const void* caller) {
  if (trace == nullptr) return;
  AsyncContext context;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &context);
  AsyncWalkedThread thread;
  Found found;
  if (os_thread_id == -1) {
    found = find_current(&thread);
  } else {
    found = AsyncWalkedThread::with_os_thread_id(os_thread_id, &thread) ? Found::other_thread
                                                                        : Found::no;
  }
  walk_and_protect(trace, depth, options, has_context ? &context : nullptr, &thread, found, caller);
}

}  // namespace

extern "C" {

JNIEXPORT void JNICALL AsyncGetStackTrace(ASGST_CallTrace* trace, jint depth, void* ucontext,
                                          uint32_t options) {
  if (trace == nullptr) return;
  AsyncContext context;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &context);
  AsyncWalkedThread thread;
  Found found = Found::no;
  if ((options & ASGST_WALK_SAME_THREAD) != 0) {
    found = find_current(&thread);
  } else if (has_context && AsyncWalkedThread::with_stack(context.sp, &thread)) {
    found = Found::other_thread;
  }
  walk_and_protect(trace, depth, options, has_context ? &context : nullptr, &thread, found,
                   __builtin_return_address(0));
}

JNIEXPORT void JNICALL AsyncGetStackTraceOfEnv(ASGST_CallTrace* trace, jint depth, void* ucontext,
                                               uint32_t options) {
  if (trace == nullptr) return;
  AsyncContext context;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &context);
  AsyncWalkedThread thread;
  Found found;
  if (trace->env_id == nullptr) {
    found = find_current(&thread);
  } else {
    found = AsyncWalkedThread::with_env(trace->env_id, &thread) ? Found::other_thread : Found::no;
  }
  walk_and_protect(trace, depth, options, has_context ? &context : nullptr, &thread, found,
                   __builtin_return_address(0));
}

JNIEXPORT void JNICALL AsyncGetStackTraceOfThread(ASGST_CallTrace* trace, jint depth,
                                                  void* ucontext, uint32_t options,
                                                  jlong os_thread_id) {
  walk_of_thread_id(trace, depth, ucontext, options, os_thread_id, __builtin_return_address(0));
}

JNIEXPORT void JNICALL AsyncGetStackTraceUnstopped(ASGST_CallTrace* trace, jint depth,
                                                   void* ucontext, uint32_t options,
                                                   jlong os_thread_id) {
  // No difference here: the walk believes nothing that it reads, and is protected besides.
  walk_of_thread_id(trace, depth, ucontext, options, os_thread_id, __builtin_return_address(0));
}

JNIEXPORT jlong JNICALL AsyncGetStackTraceContainedFaults(void) {
  return AsyncCrashProtection::faults();
}

}  // extern "C"
