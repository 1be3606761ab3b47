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

/*
 * The two stages of JFR's samplers (JEP 518, JEP 509), each by itself: what is noted of a thread
 * that is interrupted, and the trace that is made of it later. No recording is needed. C and C++.
 */
#ifndef JFRWALK_H
#define JFRWALK_H

#include <jni.h>
#include <stdint.h>

/* What JFR notes of an interrupted thread: a JfrSampleRequest. */
typedef struct {
  void* sp;  /* of an interpreted frame, its frame pointer */
  void* pc;  /* null in a biased request: the thread is walked from where it answers */
  void* bcp; /* of an interpreted frame; 1 in a native method; null else */
  jint bci;  /* of bcp in the method of the frame at sp; -1 where there is none, and not JFR's */
} JfrWalk_Request;

/* The numbers of JfrStackFrame. */
enum JfrWalk_FrameType {
  JFR_WALK_FRAME_INTERPRETER = 0,
  JFR_WALK_FRAME_JIT = 1,
  JFR_WALK_FRAME_INLINE = 2, /* inlined into the frame that follows */
  JFR_WALK_FRAME_NATIVE = 3
};

typedef struct {
  jmethodID method_id; /* null when no ID was made before */
  jint bci;            /* 0 in native methods */
  uint8_t type;        /* JfrWalk_FrameType */
} JfrWalk_Frame;

enum JfrWalk_Result {
  JFR_WALK_BIASED = 0,              /* a request without a frame */
  JFR_WALK_NO_THREAD = -1,          /* not a Java thread, or it exits */
  JFR_WALK_NO_CONTEXT = -2,         /* it is null, which JFR never passes */
  JFR_WALK_WRONG_STATE = -3,        /* JFR does not sample a thread in this state */
  JFR_WALK_NO_LAST_JAVA_FRAME = -4, /* nothing to walk from */
  JFR_WALK_INVALID_STACK_TRACE = -5,
  JFR_WALK_NOT_INITIALIZED = -6,
  JFR_WALK_CONTAINED_FAULT = -7 /* of JfrWalk_AnswerAtPoll only */
};

/* Who asks for a request. */
enum JfrWalk_Sampler {
  JFR_WALK_CPU_TIME_SAMPLER = 0, /* build_cpu_time_sample_request: in Java and native code */
  JFR_WALK_JAVA_SAMPLER = 1,     /* build_java_sample_request: in Java only */
  JFR_WALK_REGISTERS = 2         /* none of JFR's: what the context's registers say, in any state */
};

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The request that `sampler` makes of the calling thread interrupted in `ucontext`. Sets *request
 * and returns 1, or JFR_WALK_BIASED; or another JfrWalk_Result, and *request is not set. What JFR
 * notes in the thread and arms is taken back, unless it faults: the caller then restores the
 * JavaThread. The thread is halted, or it is the caller's own in a signal handler and, for
 * JFR_WALK_JAVA_SAMPLER, nobody else arms its poll. Async-signal-safe.
 */
JNIEXPORT jint JNICALL JfrWalk_BuildRequest(void* ucontext, int sampler, JfrWalk_Request* request);

/* Before the first JfrWalk_RecordTrace, once. Allocates. */
JNIEXPORT void JNICALL JfrWalk_Initialize(void);

/*
 * The trace of the calling thread, in native code or blocked, as JFR makes it of a request, which is
 * the one that the CPU-time sampler makes of `ucontext` or, where `stale`, what its registers say: a
 * sample taken before the thread went on. Writes frames[0..depth); returns how many, or a
 * JfrWalk_Result. The world is halted, and one thread calls at a time: frames are read as they
 * stand, and memory for the trace is shared. What a walk that was abandoned holds of it is taken
 * back by the next; its JavaThread the caller restores.
 */
JNIEXPORT jint JNICALL JfrWalk_RecordTrace(void* ucontext, int stale, JfrWalk_Frame* frames,
                                           jint depth);

/*
 * The trace of another thread, a JavaThread, made of *request in a handshake: while that thread is
 * at a poll or outside Java, so that threads in Java answer as they do to JFR. The caller is a Java
 * thread in native code, nobody calls JfrWalk_RecordTrace meanwhile, and one thread calls at a time.
 * A fault is contained. Waits for the thread.
 */
JNIEXPORT jint JNICALL JfrWalk_AnswerAtPoll(JNIEnv* env, void* java_thread,
                                            const JfrWalk_Request* request, JfrWalk_Frame* frames,
                                            jint depth);

#ifdef __cplusplus
}
#endif

#endif /* JFRWALK_H */
