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

#include "asgct2.h"

#include "compiler/compilerDefinitions.hpp"
#include "prims/asyncCrashProtection.hpp"
#include "prims/asyncMethods.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "prims/jvmtiExport.hpp"

// AsyncGetCallTrace2, in both of its layouts: a thin layer over AsyncStackWalker.

static_assert(sizeof(asgct2::packed::CallFrame) == 16, "as large as a frame of AsyncGetCallTrace");

// The error codes of AsyncGetCallTrace (prims/forte.cpp), which has no header.
enum {
  ticks_no_Java_frame = 0,
  ticks_no_class_load = -1,
  ticks_GC_active = -2,
  ticks_unknown_not_Java = -3,
  ticks_not_walkable_not_Java = -4,
  ticks_unknown_Java = -5,
  ticks_not_walkable_Java = -6,
  ticks_unknown_state = -7,
  ticks_thread_exit = -8,
  ticks_deopt = -9
};

static asgct2::FrameTypeId type_of(const AsyncStackWalker::Frame& frame) {
  switch (frame.type) {
    case AsyncStackWalker::FrameType::java_inlined:
      return asgct2::FRAME_INLINE;
    case AsyncStackWalker::FrameType::java_native:
    case AsyncStackWalker::FrameType::continuation:
    case AsyncStackWalker::FrameType::continuation_frozen:
      return asgct2::FRAME_NATIVE;
    case AsyncStackWalker::FrameType::non_java:
      return asgct2::FRAME_CPP;
    case AsyncStackWalker::FrameType::java:
      break;
  }
  return frame.comp_level == CompLevel_none ? asgct2::FRAME_INTERPRETED : asgct2::FRAME_JIT;
}

static void copy_frame(const AsyncStackWalker::Frame& frame, asgct2::CallFrame* to) {
  const bool non_java = frame.type == AsyncStackWalker::FrameType::non_java;
  const bool native = type_of(frame) == asgct2::FRAME_NATIVE;
  to->machine_pc = non_java || native ? reinterpret_cast<void*>(frame.pc) : nullptr;
  to->type = type_of(frame);
  to->comp_level = static_cast<uint8_t>(
      non_java ? (frame.in_code_cache ? CompLevel_all : CompLevel_none) : frame.comp_level);
  to->bci = native ? -3 : frame.bci;
  to->method_id = non_java ? nullptr : AsyncMethods::jmethod_id_or_null(frame.method);
}

static void copy_frame(const AsyncStackWalker::Frame& frame, asgct2::packed::CallFrame* to) {
  const bool inlined = frame.type == AsyncStackWalker::FrameType::java_inlined;
  if (inlined || frame.type == AsyncStackWalker::FrameType::java) {
    to->java_frame.type = inlined ? asgct2::packed::FRAME_JAVA_INLINED : asgct2::packed::FRAME_JAVA;
    to->java_frame.comp_level = static_cast<uint8_t>(frame.comp_level);
    to->java_frame.bci = frame.bci < 0 ? 65535 : static_cast<uint16_t>(frame.bci);
    to->java_frame.method_id = AsyncMethods::jmethod_id_or_null(frame.method);
    return;
  }
  const bool native = frame.type != AsyncStackWalker::FrameType::non_java;
  to->non_java_frame.type = native                ? asgct2::packed::FRAME_NATIVE
                            : frame.in_code_cache ? asgct2::packed::FRAME_STUB
                                                  : asgct2::packed::FRAME_CPP;
  to->non_java_frame.machine_pc = reinterpret_cast<void*>(frame.pc);
}

namespace {

// A trace of either layout.
struct Trace {
  JNIEnv* env;
  jint room;  // for frames
  void* frames;
  void (*put)(const AsyncStackWalker::Frame& frame, void* frames, jint index);
  const char* stopped;
};

}  // namespace

template <typename CallFrame>
static void put(const AsyncStackWalker::Frame& frame, void* frames, jint index) {
  copy_frame(frame, &static_cast<CallFrame*>(frames)[index]);
}

static jint walk_calling_thread(Trace* trace, void* ucontext) {
  const AsyncWalkedThread thread = AsyncWalkedThread::current();
  if (trace->env == nullptr || thread.java_thread() == nullptr) return ticks_thread_exit;
  switch (thread.refusal(/*unsafe_states=*/false)) {
    case AsyncWalkedThread::Refusal::no_thread:
    case AsyncWalkedThread::Refusal::exiting:
      return ticks_thread_exit;
    case AsyncWalkedThread::Refusal::deoptimising:
      return ticks_deopt;
    case AsyncWalkedThread::Refusal::collecting:
      return ticks_GC_active;
    case AsyncWalkedThread::Refusal::at_safepoint:  // AsyncGetCallTrace walks then
    case AsyncWalkedThread::Refusal::none:
      break;
  }
  if (!JvmtiExport::should_post_class_load()) return ticks_no_class_load;

  AsyncContext context;
  const bool has_context = AsyncWalkedThread::context_of(ucontext, &context);
  const bool java = thread.in_java();
  AsyncStackWalker walker(thread.java_thread(), thread.low(), thread.high(), /*c_frames=*/true);
  switch (thread.start(&walker, has_context ? &context : nullptr, /*c_frames=*/true)) {
    case AsyncWalkedThread::Start::no_java_frame:
      return ticks_no_Java_frame;
    case AsyncWalkedThread::Start::unknown_state:
      return ticks_unknown_state;
    case AsyncWalkedThread::Start::failed:
      trace->stopped = AsyncStackWalker::explain(walker.stop());
      return java ? ticks_unknown_Java : ticks_unknown_not_Java;
    case AsyncWalkedThread::Start::started:
      break;
  }
  AsyncStackWalker::Frame frame;
  jint count = 0;
  while (count < trace->room && walker.next(&frame)) trace->put(frame, trace->frames, count++);
  trace->stopped = AsyncStackWalker::explain(walker.stop());
  if (count == 0 && trace->stopped != nullptr) {
    return java ? ticks_not_walkable_Java : ticks_not_walkable_not_Java;
  }
  return count;
}

// `caller`: where the profiler's handler has called.
template <typename CallFrame, typename CallTrace>
static void walk(CallTrace* to, jint depth, void* ucontext, const void* caller) {
  if (to == nullptr) return;
  Trace trace = {to->env_id, to->frames == nullptr ? 0 : depth, to->frames, &put<CallFrame>,
                 nullptr};
  if (AsyncCrashProtection::faults_arrive(caller)) {
    to->num_frames = walk_calling_thread(&trace, ucontext);
  } else {
    trace.stopped = "SIGSEGV or SIGBUS is blocked";
    to->num_frames = ticks_unknown_state;
  }
  to->frame_info = const_cast<char*>(trace.stopped);
}

extern "C" {

JNIEXPORT void JNICALL AsyncGetCallTrace2(asgct2::CallTrace* trace, jint depth, void* ucontext) {
  walk<asgct2::CallFrame>(trace, depth, ucontext, __builtin_return_address(0));
}

JNIEXPORT void JNICALL AsyncGetCallTrace2Packed(asgct2::packed::CallTrace* trace, jint depth,
                                                void* ucontext) {
  walk<asgct2::packed::CallFrame>(trace, depth, ucontext, __builtin_return_address(0));
}

}  // extern "C"
