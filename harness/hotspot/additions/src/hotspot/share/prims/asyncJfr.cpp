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

#include "jfrwalk.h"

#include "interpreter/interpreter.hpp"
#include "jfr/periodic/sampling/jfrSampleRequest.hpp"
#include "jfr/recorder/stacktrace/jfrStackTrace.hpp"
#include "jfr/support/jfrMethodLookup.hpp"
#include "jfr/support/jfrThreadLocal.hpp"
#include "memory/resourceArea.hpp"
#include "prims/asyncCrashProtection.hpp"
#include "prims/asyncMethods.hpp"
#include "runtime/frame.inline.hpp"
#include "runtime/handles.inline.hpp"
#include "runtime/handshake.hpp"
#include "runtime/interfaceSupport.inline.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/os.hpp"
#include "runtime/safepointMechanism.inline.hpp"
#include "runtime/threadSMR.hpp"
#include "utilities/growableArray.hpp"

// JFR's samplers: a thin layer over JfrSampleRequestBuilder, JfrThreadSampling and JfrStackTrace.

// In jfrThreadSampling.cpp (edits.toml).
bool framestorm_jfr_top_frame(const JfrSampleRequest& request, frame& top_frame,
                              bool& in_continuation, JavaThread* jt);

namespace {

// Members that JFR keeps to itself: an explicit instantiation may name them.
template <typename Tag, typename Tag::Member member>
struct Reach {
  friend typename Tag::Member member_of(Tag) { return member; }
};
#define REACH(Tag, Class, Type, member) \
  struct Tag {                          \
    typedef Type Class::* Member;       \
    friend Member member_of(Tag);       \
  };                                    \
  template struct Reach<Tag, &Class::member>
REACH(TraceFrames, JfrStackTrace, JfrStackFrames*, _frames);
REACH(TraceMaxFrames, JfrStackTrace, u4, _max_frames);
REACH(FrameKlass, JfrStackFrame, const InstanceKlass*, _klass);
REACH(FrameMethod, JfrStackFrame, traceid, _methodid);
REACH(FrameBci, JfrStackFrame, int, _bci);
REACH(FrameType, JfrStackFrame, u1, _type);
#undef REACH

STATIC_ASSERT(JFR_WALK_FRAME_INTERPRETER == JfrStackFrame::FRAME_INTERPRETER);
STATIC_ASSERT(JFR_WALK_FRAME_JIT == JfrStackFrame::FRAME_JIT);
STATIC_ASSERT(JFR_WALK_FRAME_INLINE == JfrStackFrame::FRAME_INLINE);
STATIC_ASSERT(JFR_WALK_FRAME_NATIVE == JfrStackFrame::FRAME_NATIVE);

JavaThread* walked_thread() {
  Thread* const thread = Thread::current_or_null_safe();
  if (thread == nullptr || !thread->is_Java_thread()) return nullptr;
  JavaThread* const java = static_cast<JavaThread*>(thread);
  return java->is_exiting() ? nullptr : java;
}

void* bcp_of(void* ucontext) {
  void* const bcp = os::fetch_bcp_from_context(ucontext);
  return bcp != nullptr ? bcp : reinterpret_cast<void*>(1);
}

// As a JfrSampleResult's caller sees it: build_java_sample_request leaves the request in the thread
// and arms its poll.
JfrSampleRequest java_sample(void* ucontext, JavaThread* jt) {
  JfrThreadLocal* const tl = jt->jfr_thread_local();
  const JfrSampleRequest before = tl->sample_request();
  const int state = tl->sample_state();
  const SafepointMechanism::ThreadData poll = *jt->poll_data();
  JfrSampleRequestBuilder::build_java_sample_request(ucontext, tl, jt);
  const JfrSampleRequest request = tl->sample_request();
  tl->set_sample_request(before);
  tl->set_sample_state(state);
  *jt->poll_data() = poll;
  return request;
}

JfrSampleRequest cpu_time_sample(void* ucontext, JavaThread* jt) {
  JfrSampleRequest request;
  JfrTicks now = JfrTicks::now();
  JfrSampleRequestBuilder::build_cpu_time_sample_request(request, ucontext, jt,
                                                         jt->jfr_thread_local(), now);
  return request;
}

// What the method of the interpreted frame says of the request's bcp.
jint bci_of(const JfrSampleRequest& request) {
  if (request._sample_bcp == nullptr) return -1;
  uintptr_t method;
  const intptr_t* const fp = static_cast<const intptr_t*>(request._sample_sp);
  const uintptr_t place = reinterpret_cast<uintptr_t>(fp + frame::interpreter_frame_method_offset);
  if (!AsyncMethods::load(place, &method) || !AsyncMethods::is_method(method)) return -1;
  return AsyncMethods::bci_of(reinterpret_cast<const Method*>(method),
                              reinterpret_cast<uintptr_t>(request._sample_bcp));
}

JfrSampleRequest registers_of(void* ucontext) {
  JfrSampleRequest request;
  intptr_t* sp;
  intptr_t* fp;
  const address pc = os::fetch_frame_from_context(ucontext, &sp, &fp);
  const bool interpreted = Interpreter::contains(pc);
  request._sample_pc = pc;
  request._sample_sp = interpreted ? fp : sp;
  request._sample_bcp = interpreted ? bcp_of(ucontext) : nullptr;
  return request;
}

// An arena that a walk may abandon as it is: it is put back by the next one.
template <class Area>
class Reusable {
  alignas(Area) char _area[sizeof(Area)];
  alignas(Area) char _fresh[sizeof(Area)];

  // Arena's own members, of any arena.
  struct Chunks : public Arena {
    static void drop_later(Arena* area) {
      Chunk* const first = area->*(&Chunks::_first);
      if (first->next() != nullptr) Chunk::next_chop(first);
    }
  };

 public:
  template <typename... Arguments>
  void make(Arguments... arguments) {
    ::new (static_cast<void*>(_area)) Area(arguments...);
    memcpy(_fresh, _area, sizeof(Area));
  }
  Area* renew() {
    Area* const area = reinterpret_cast<Area*>(_area);
    Chunks::drop_later(area);
    memcpy(_area, _fresh, sizeof(Area));
    return area;
  }
};

// Room for the deepest trace without another chunk: the array of frames grows by doubling.
constexpr size_t resource_bytes = 2 * M;

bool initialized = false;
Reusable<ResourceArea> resources;
Reusable<HandleArea> handles;

// A walk allocates in the thread's areas; these are its own, so that an abandoned one leaves nothing.
class OwnAreas : public StackObj {
  Thread* const _thread;
  ResourceArea* const _resources;
  HandleArea* const _handles;
  HandleMark* const _mark;

 public:
  explicit OwnAreas(Thread* thread)
      : _thread(thread),
        _resources(thread->resource_area()),
        _handles(thread->handle_area()),
        _mark(thread->last_handle_mark()) {
    thread->set_resource_area(resources.renew());
    thread->set_handle_area(handles.renew());
  }
  ~OwnAreas() {
    _thread->set_resource_area(_resources);
    _thread->set_handle_area(_handles);
    _thread->set_last_handle_mark(_mark);
  }
};

// Debug builds check that a thread outside the VM reads no object, as JFR's sampler, in the VM
// itself, does of one that waits in native code.
class InVm : public StackObj {
#ifdef ASSERT
  JavaThread* const _thread;
  const JavaThreadState _state;

 public:
  explicit InVm(JavaThread* thread) : _thread(thread), _state(thread->thread_state()) {
    thread->set_thread_state(_thread_in_vm);
  }
  ~InVm() { _thread->set_thread_state(_state); }
#else
 public:
  explicit InVm(JavaThread*) {}
#endif
};

void copy_frame(const JfrStackFrame& frame, JfrWalk_Frame* to) {
  const Method* const method =
      JfrMethodLookup::lookup(frame.*member_of(FrameKlass()), frame.*member_of(FrameMethod()));
  to->method_id = method == nullptr ? nullptr : AsyncMethods::jmethod_id_or_null(method);
  to->bci = frame.*member_of(FrameBci());
  to->type = frame.*member_of(FrameType());
}

// As record_thread_in_java() of jfrThreadSampling.cpp, up to where the trace is stored.
jint record(const JfrSampleRequest& request, JavaThread* jt, JfrWalk_Frame* frames, jint depth) {
  frame top_frame;
  bool in_continuation = false;
  if (!framestorm_jfr_top_frame(request, top_frame, in_continuation, jt)) {
    return JFR_WALK_NO_LAST_JAVA_FRAME;
  }
  ResourceMark rm(Thread::current());
  // Each thread has one from its start; debug builds check that JFR's own is not the outermost.
  const HandleMark outermost(Thread::current());
  JfrStackTrace trace;
  trace.*member_of(TraceMaxFrames()) = static_cast<u4>(depth);
  if (!trace.record(jt, top_frame, in_continuation, request)) return JFR_WALK_INVALID_STACK_TRACE;
  const JfrStackFrames* const recorded = trace.*member_of(TraceFrames());
  const jint count = MIN2(recorded->length(), depth);  // the sampled frame has no limit in JFR
  for (jint i = 0; i < count; i++) copy_frame(recorded->at(i), &frames[i]);
  return count;
}

class AnswerClosure : public HandshakeClosure {
  const JfrSampleRequest& _request;
  JfrWalk_Frame* const _frames;
  const jint _depth;
  JavaThread* _jt;
  jint _result;

 public:
  AnswerClosure(const JfrSampleRequest& request, JfrWalk_Frame* frames, jint depth)
      : HandshakeClosure("JfrWalk_AnswerAtPoll"),
        _request(request),
        _frames(frames),
        _depth(depth),
        _jt(nullptr),
        _result(JFR_WALK_NO_THREAD) {}
  jint result() const { return _result; }

  void do_thread(Thread* thread) override {
    _jt = JavaThread::cast(thread);
    const OwnAreas areas(Thread::current());
    const auto body = [](void* self) {
      AnswerClosure* const answer = static_cast<AnswerClosure*>(self);
      answer->_result = record(answer->_request, answer->_jt, answer->_frames, answer->_depth);
    };
    if (!AsyncCrashProtection::call(body, this)) _result = JFR_WALK_CONTAINED_FAULT;
  }
};

}  // namespace

extern "C" JNIEXPORT jint JNICALL JfrWalk_BuildRequest(void* ucontext, int sampler,
                                                       JfrWalk_Request* result) {
  JavaThread* const jt = walked_thread();
  if (jt == nullptr) return JFR_WALK_NO_THREAD;
  if (ucontext == nullptr) return JFR_WALK_NO_CONTEXT;
  const bool in_java = jt->thread_state() == _thread_in_Java;
  const bool by_java_sampler = sampler == JFR_WALK_JAVA_SAMPLER;
  const bool by_nobody = sampler == JFR_WALK_REGISTERS;
  if (!by_nobody && !in_java && (by_java_sampler || jt->thread_state() != _thread_in_native)) {
    return JFR_WALK_WRONG_STATE;
  }
  const JfrSampleRequest request = by_nobody         ? registers_of(ucontext)
                                   : by_java_sampler ? java_sample(ucontext, jt)
                                                     : cpu_time_sample(ucontext, jt);
  *result = {request._sample_sp, request._sample_pc, request._sample_bcp, bci_of(request)};
  return request._sample_pc == nullptr ? JFR_WALK_BIASED : 1;
}

extern "C" JNIEXPORT void JNICALL JfrWalk_Initialize() {
  if (initialized) return;
  resources.make(resource_bytes, mtThread);
  handles.make(mtThread, static_cast<HandleArea*>(nullptr));
  initialized = true;
}

extern "C" JNIEXPORT jint JNICALL JfrWalk_RecordTrace(void* ucontext, int stale,
                                                      JfrWalk_Frame* frames, jint depth) {
  if (!initialized) return JFR_WALK_NOT_INITIALIZED;
  JavaThread* const jt = walked_thread();
  if (jt == nullptr) return JFR_WALK_NO_THREAD;
  if (ucontext == nullptr) return JFR_WALK_NO_CONTEXT;
  const JavaThreadState state = jt->thread_state();
  if (state != _thread_in_native && state != _thread_blocked) return JFR_WALK_WRONG_STATE;
  // JFR never asks for no frames.
  if (depth <= 0) return 0;
  JfrSampleRequest request;
  if (stale) {
    request = registers_of(ucontext);
  } else if (state == _thread_in_native) {
    request = cpu_time_sample(ucontext, jt);
  }
  const OwnAreas areas(jt);
  const InVm in_vm(jt);
  return record(request, jt, frames, depth);
}

extern "C" JNIEXPORT jint JNICALL JfrWalk_AnswerAtPoll(JNIEnv* env, void* java_thread,
                                                       const JfrWalk_Request* request,
                                                       JfrWalk_Frame* frames, jint depth) {
  if (!initialized) return JFR_WALK_NOT_INITIALIZED;
  if (depth <= 0) return 0;
  JavaThread* const current = JavaThread::thread_from_jni_environment(env);
  const ThreadInVMfromNative in_vm(current);
  ThreadsListHandle list(current);
  JavaThread* const target = static_cast<JavaThread*>(java_thread);
  if (!list.includes(target)) return JFR_WALK_NO_THREAD;
  JfrSampleRequest sample;
  sample._sample_sp = request->sp;
  sample._sample_pc = request->pc;
  sample._sample_bcp = request->bcp;
  AnswerClosure answer(sample, frames, depth);
  Handshake::execute(&answer, &list, target);
  return answer.result();
}
