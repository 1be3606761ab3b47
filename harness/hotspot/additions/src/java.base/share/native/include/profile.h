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
 * AsyncGetStackTrace: stack traces of a halted thread, Java and C/C++ frames, from a signal handler
 * or from another thread. The interface of JEP 435; C and C++.
 *
 * profile2.h is the later, iterator-based interface. Both use names of the other with other values:
 * a translation unit includes one of them.
 */
#ifndef PROFILE_H
#define PROFILE_H

#ifdef PROFILE2_H
#error "profile.h and profile2.h define the same names: include one of them in a translation unit"
#endif

#include <jni.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Other bits are ignored. */
enum ASGST_Options {
  ASGST_INCLUDE_C_FRAMES = 1,         /* C/C++ frames, stubs among them */
  ASGST_INCLUDE_NON_JAVA_THREADS = 2, /* threads of the VM, of native code, and in deoptimisation */
  ASGST_WALK_DURING_UNSAFE_STATES = 4, /* while the VM is at a safepoint or collects */
  ASGST_WALK_SAME_THREAD = 8,    /* the calling thread is the walked one; no crash protection */
  ASGST_END_AT_CONTINUATION = 64 /* the trace ends with the first frame of a continuation's entry,
                                    instead of going on into the carrier */
};

/* What the walked thread is doing. */
enum ASGST_TRACE_KIND {
  ASGST_JAVA_TRACE = 1,
  ASGST_CPP_TRACE = 2,
  ASGST_GC_TRACE = 4,
  ASGST_DEOPT_TRACE = 8,
  ASGST_NEW_THREAD_TRACE = 16, /* the prototype's; here a new thread has ASGST_JAVA_TRACE */
  ASGST_UNKNOWN_TRACE = 32
};

enum ASGST_Error {
  ASGST_NO_JAVA_FRAME = 0,
  ASGST_NO_CLASS_LOAD = -1,         /* JVMTI's ClassLoad event is not enabled: no jmethodIDs */
  ASGST_GC_ACTIVE = -2,             /* a collection has stopped the world */
  ASGST_UNKNOWN_NOT_JAVA = -3,      /* outside Java, no usable frame to start from */
  ASGST_NOT_WALKABLE_NOT_JAVA = -4, /* the prototype's; here that is ASGST_UNKNOWN_NOT_JAVA */
  ASGST_UNKNOWN_JAVA = -5,          /* in Java, the context is of no use */
  ASGST_NOT_WALKABLE_JAVA = -6,     /* in Java, no frame could be made of the context */
  ASGST_UNKNOWN_STATE = -7,         /* the thread's state is none the VM has */
  ASGST_THREAD_EXIT = -8,
  ASGST_DEOPT = -9, /* the thread is deoptimising */
  ASGST_THREAD_NOT_JAVA = -10,
  ASGST_NO_THREAD = -11,    /* the context is on the stack of no thread of the VM */
  ASGST_UNSAFE_STATE = -12, /* the VM is at a safepoint */
  ASGST_WRONG_STATE = -13,  /* not one of the accepted states */
  ASGST_WRONG_KIND = -14,   /* not one of the accepted kinds */
  /* Below -30: this implementation's own. */
  ASGST_CONTAINED_FAULT = -31, /* the walk faulted and was abandoned: a bug of the walk */
  ASGST_FAULTS_BLOCKED = -32   /* the calling thread blocks SIGSEGV or SIGBUS, see below */
};

enum ASGST_FrameTypeId {
  ASGST_FRAME_JAVA = 1,         /* interpreted or compiled */
  ASGST_FRAME_JAVA_INLINED = 2, /* inlined into the frame that follows */
  ASGST_FRAME_JAVA_NATIVE = 3,  /* a native method */
  ASGST_FRAME_NATIVE = 3,       /* the same */
  ASGST_FRAME_CPP = 4,          /* C, C++, stubs */
  /* Continuation.enterSpecial: before it stand the frames of a continuation, as which a virtual
     thread runs, and behind it those of its carrier. The first of all frames where the
     continuation is just being entered or left. */
  ASGST_FRAME_CONTINUATION = 5,
  /* The same; frames between the one before and this one are missing: they are frozen, in the
     heap. */
  ASGST_FRAME_CONTINUATION_FROZEN = 6
};

/* All but ASGST_FRAME_CPP. */
typedef struct {
  uint8_t type;
  int8_t comp_level;   /* 0 interpreted, 1 to 3 C1, 4 C2 or JVMCI, -1 undefined */
  uint16_t bci;        /* 65535: beyond 65534 or not available, as in native methods */
  jmethodID method_id; /* null when the class's IDs were not made before */
} ASGST_JavaFrame;

/* ASGST_FRAME_CPP */
typedef struct {
  uint8_t type;
  void* pc; /* null in stubs and other code the VM made */
} ASGST_NonJavaFrame;

typedef union {
  uint8_t type;
  ASGST_JavaFrame java_frame;
  ASGST_NonJavaFrame non_java_frame;
} ASGST_CallFrame;

typedef struct {
  JNIEnv* env_id;          /* out: of the walked thread, null for one that is not Java's */
  jint num_frames;         /* out: frames, or an ASGST_Error */
  uint8_t kind;            /* in: mask of accepted kinds, 0 all; out: the trace's */
  jint state;              /* in: mask of accepted states, 0 all; out: a subset of what JVMTI's
                              GetThreadState says (a thread that sleeps or is parked is WAITING;
                              never INTERRUPTED), -1 for traces that are not Java's, which are
                              always accepted */
  ASGST_CallFrame* frames; /* the caller's, room for `depth` frames; callee before caller */
  void* frame_info;        /* out: null when the walk came to the stack's end or to `depth`, else
                              a constant string that says where and why it stopped, or
                              ASGST_FRAMES_FROZEN */
} ASGST_CallTrace;

/* The text of frame_info when the walk came to the end, but frames are missing, which are in the
   heap: where the last ASGST_FRAME_CONTINUATION_FROZEN stands. */
#define ASGST_FRAMES_FROZEN "frames of a continuation are frozen, in the heap"

/*
 * Walks the stack that `ucontext` (a ucontext_t) was interrupted on. The walked thread has to be
 * halted for the whole call.
 *
 * Without ASGST_WALK_SAME_THREAD the walked thread is the one whose stack the context's sp is on; a
 * fault of the walk is contained, counted and reported as ASGST_CONTAINED_FAULT. With it, it is the
 * calling one, and the context may be null when that is outside Java.
 *
 * Async-signal-safe: allocates nothing, takes no lock, writes *trace and frames[0..depth) only.
 * JVMTI's ClassLoad event has to be enabled from the start. Walks read what may be unreadable:
 * SIGSEGV and SIGBUS must not be blocked, as by a signal handler with a full sa_mask. Such a handler
 * is told ASGST_FAULTS_BLOCKED; it is looked up once for each place that calls.
 */
JNIEXPORT void JNICALL AsyncGetStackTrace(ASGST_CallTrace* trace, jint depth, void* ucontext,
                                          uint32_t options);

/*
 * The designs of separate-thread walking that came before, for comparison. Like AsyncGetStackTrace
 * in all but how the walked thread is told; always protected unless it is the calling one.
 */

/* The thread of trace->env_id (in); the calling one when that is null. */
JNIEXPORT void JNICALL AsyncGetStackTraceOfEnv(ASGST_CallTrace* trace, jint depth, void* ucontext,
                                               uint32_t options);

/* The thread with this OS thread id (gettid); the calling one for -1. Found in constant time. */
JNIEXPORT void JNICALL AsyncGetStackTraceOfThread(ASGST_CallTrace* trace, jint depth,
                                                  void* ucontext, uint32_t options,
                                                  jlong os_thread_id);

/*
 * The same for a thread that goes on running, from a copy of its context: for measurement only.
 * Frames may be of different moments, or nonsense; the thread must not end meanwhile.
 */
JNIEXPORT void JNICALL AsyncGetStackTraceUnstopped(ASGST_CallTrace* trace, jint depth,
                                                   void* ucontext, uint32_t options,
                                                   jlong os_thread_id);

/* Faults contained since the VM was started. Async-signal-safe. */
JNIEXPORT jlong JNICALL AsyncGetStackTraceContainedFaults(void);

/*
 * How often walks of all threads came to where a continuation begins, since the VM was started.
 */
typedef struct {
  jlong barriers;        /* frames that return to the return barrier: their callers are frozen */
  jlong entries;         /* frames of Continuation.enterSpecial that were given */
  jlong entries_missing; /* barriers where the thread has entered no continuation: the walk ended */
  jlong speculative;     /* entries known by the thread alone: frames were just being thawed */
} ASGST_ContinuationCounts;

/* Async-signal-safe. */
JNIEXPORT void JNICALL ASGST_GetContinuationCounts(ASGST_ContinuationCounts* counts);

#ifdef __cplusplus
}
#endif

#endif /* PROFILE_H */
