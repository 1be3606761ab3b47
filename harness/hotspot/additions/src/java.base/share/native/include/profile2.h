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
 * Stack walking frame by frame, and methods and classes without jmethodIDs. C and C++.
 *
 * The safepoint queues of this interface (ASGST_REGISTER_QUEUE) and frame marks
 * (ASGST_MARK_FRAME) are capabilities that this VM does not have; see ASGST_Capabilities().
 */
#ifndef PROFILE2_H
#define PROFILE2_H

#ifdef PROFILE_H
#error "profile.h and profile2.h define the same names: include one of them in a translation unit"
#endif

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What there is -------------------------------------------------------------------------- */

enum ASGST_Capability {
  ASGST_REGISTER_QUEUE = 1, /* everything with safepoint queues */
  ASGST_MARK_FRAME = 2      /* everything with marked frames */
};

/* The optional parts this VM has, as a bit mask. Async-signal-safe. */
JNIEXPORT int JNICALL ASGST_Capabilities(void);

/* ---- Frames --------------------------------------------------------------------------------- */

typedef void* ASGST_Method; /* valid until its class is unloaded, see the handlers below */
typedef void* ASGST_Class;

enum ASGST_FrameTypeId {
  ASGST_FRAME_JAVA = 1,         /* interpreted or compiled */
  ASGST_FRAME_JAVA_INLINED = 2, /* inlined into the frame that follows */
  ASGST_FRAME_JAVA_NATIVE = 3,  /* a native method */
  ASGST_FRAME_NON_JAVA = 4      /* C, C++, stubs */
};

typedef struct {
  uint8_t type;        /* ASGST_FrameTypeId */
  int comp_level;      /* 0 interpreted, 1 to 3 C1, 4 C2 or JVMCI, -1 undefined */
  int bci;             /* -1 where there is none, as in native methods */
  ASGST_Method method; /* null in frames that are not Java's */
  void* pc;
  void* sp; /* inlined frames have that of the frame they are in */
  void* fp; /* the frame pointer register, which compiled code may use otherwise */
} ASGST_Frame;

enum ASGST_Options {
  ASGST_INCLUDE_NON_JAVA_FRAMES = 1,
  ASGST_INCLUDE_NON_JAVA_THREADS = 2,
  ASGST_WALK_DURING_UNSAFE_STATES = 4
};

/* What the walked thread is doing; results above 0 of ASGST_RunWithIterator. */
enum ASGST_TRACE_KIND {
  ASGST_JAVA_TRACE = 1,
  ASGST_CPP_TRACE = 2,
  ASGST_GC_TRACE = 4,
  ASGST_DEOPT_TRACE = 8,
  ASGST_UNKNOWN_TRACE = 32
};

enum ASGST_Error {
  ASGST_NO_FRAME = 0,           /* come to the end */
  ASGST_NO_THREAD = -1,         /* not a thread of the VM */
  ASGST_THREAD_EXIT = -2,       /* dying */
  ASGST_UNSAFE_STATE = -3,      /* at a safepoint, collecting, deoptimising, or in no known state */
  ASGST_NO_TOP_JAVA_FRAME = -4, /* no Java frame to start from */
  ASGST_ENQUEUE_NO_QUEUE = -5,
  ASGST_ENQUEUE_FULL_QUEUE = -6,
  ASGST_ENQUEUE_OTHER_ERROR = -7,
  /* Below -16: this implementation's own. */
  ASGST_STOPPED_BAD_STACK = -17,      /* sp left the stack or did not advance */
  ASGST_STOPPED_BAD_PC = -18,         /* the return address is in no code the walk knows */
  ASGST_STOPPED_BAD_FRAME = -19,      /* a frame that does not look like one */
  ASGST_STOPPED_NO_UNWIND_INFO = -20, /* C code without frame pointer and unwind table */
  ASGST_STOPPED_TOO_DEEP = -21,       /* more frames than a stack can have */
  ASGST_INVALID_ITERATOR = -22,       /* null, or its handler has returned */
  ASGST_INVALID_ARGUMENT = -24        /* a null handler or frame */
};

typedef struct ASGST_Iterator ASGST_Iterator;
typedef void (*ASGST_IteratorHandler)(ASGST_Iterator* iterator, void* argument);

/*
 * Calls fun once with an iterator over the frames of the calling thread, which was interrupted with
 * `ucontext` (null: only when it is outside Java). The iterator ends with the handler. Handlers may
 * run iterators themselves, and may leave early, by longjmp too; an iterator that was left so ends
 * when its memory is used again. The VM keeps track of 256 at a time; beyond, the oldest ends.
 *
 * Returns a kind (> 0) or an error (<= 0); the handler is called for kinds only. Async-signal-safe.
 */
JNIEXPORT int JNICALL ASGST_RunWithIterator(void* ucontext, int32_t options,
                                            ASGST_IteratorHandler fun, void* argument);

/* The same from a frame instead of a context, on whichever stack of the VM's threads sp is. */
JNIEXPORT int JNICALL ASGST_RunWithIteratorFromFrame(void* sp, void* fp, void* pc, int options,
                                                     ASGST_IteratorHandler fun, void* argument);

/* 1 and the next frame, ASGST_NO_FRAME at the end, or an error. Async-signal-safe. */
JNIEXPORT int JNICALL ASGST_NextFrame(ASGST_Iterator* iterator, ASGST_Frame* frame);

/* Back to the topmost frame. Nothing for an invalid iterator. Async-signal-safe. */
JNIEXPORT void JNICALL ASGST_RewindIterator(ASGST_Iterator* iterator);

/*
 * What the next ASGST_NextFrame will return: 1, ASGST_NO_FRAME (also for null), or an error.
 * Async-signal-safe.
 */
JNIEXPORT int JNICALL ASGST_State(ASGST_Iterator* iterator);

/*
 * A subset of the calling thread's JVMTI state: a thread that sleeps or is parked is WAITING; never
 * INTERRUPTED; SUSPENDED only for a thread suspended by JVMTI. 0 for a thread that is not Java's.
 * Async-signal-safe.
 */
JNIEXPORT int JNICALL ASGST_ThreadState(void);

/* ---- Methods and classes -------------------------------------------------------------------- */

/*
 * Names are copied to the caller's buffers, cut to their lengths (in bytes, the closing 0 included)
 * but not within a character, in modified UTF-8; a null buffer is left out. Lengths come back as
 * those of the whole names without the 0; 0 when there is none.
 */
typedef struct {
  ASGST_Class klass;
  char* method_name;
  int method_name_length;
  char* signature;
  int signature_length;
  char* generic_signature;
  int generic_signature_length;
  int modifiers; /* access flags of the class file */
} ASGST_MethodInfo;

typedef struct {
  char* class_name; /* as in signatures, without L and ;: java/lang/String */
  int class_name_length;
  char* generic_class_name;
  int generic_class_name_length;
  int modifiers; /* access flags of the class file: a nested class is never private or static */
} ASGST_ClassInfo;

typedef struct {
  int start_bci;
  int line_number;
} ASGST_LineNumberEntry;

/* 1, or 0 for what is no method (its class was unloaded). `info` may be null. Async-signal-safe. */
JNIEXPORT int JNICALL ASGST_GetMethodInfo(ASGST_Method method, ASGST_MethodInfo* info);

/* 1, or 0 for what is no class. `info` may be null. Async-signal-safe. */
JNIEXPORT int JNICALL ASGST_GetClassInfo(ASGST_Class klass, ASGST_ClassInfo* info);

/* The source line of a bci, -1 when there is none. Async-signal-safe. */
JNIEXPORT int JNICALL ASGST_GetLineNumber(ASGST_Method method, int bci);

/*
 * Copies at most `length` entries and returns how many the method has, -1 for what is no method.
 * Async-signal-safe.
 */
JNIEXPORT int JNICALL ASGST_GetLineNumberTable(ASGST_Method method, ASGST_LineNumberEntry* entries,
                                               int length);

/* Null when the ID was not made before, or for what is no method. Async-signal-safe. */
JNIEXPORT jmethodID JNICALL ASGST_MethodToJMethodID(ASGST_Method method);

/* Null for an ID whose class was unloaded. Not for signal handlers. */
JNIEXPORT ASGST_Method JNICALL ASGST_JMethodIDToMethod(jmethodID method);

/*
 * Called when a class is unloaded, before its methods are freed, with all of them, those that
 * redefinition replaced while they ran included. What they are can still be asked for (by
 * ASGST_GetMethodInfo ...) in the handler, and not any more afterwards. At a safepoint or on a
 * thread of the collector: no JNI, no JVMTI, no waiting for Java threads.
 */
typedef void (*ASGST_ClassUnloadHandler)(ASGST_Class klass, ASGST_Method* methods, int count,
                                         void* argument);

/*
 * 1, or 0 when there are 64 already, this pair is among them, or the handler is null. Not for
 * signal handlers.
 */
JNIEXPORT int JNICALL ASGST_RegisterClassUnloadHandler(ASGST_ClassUnloadHandler handler,
                                                       void* argument);

/* 1, or 0 when the pair was not registered. It may still be running. Not for signal handlers. */
JNIEXPORT int JNICALL ASGST_DeregisterClassUnloadHandler(ASGST_ClassUnloadHandler handler,
                                                         void* argument);

#ifdef __cplusplus
}
#endif

#endif /* PROFILE2_H */
