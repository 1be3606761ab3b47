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
 * Stack walking frame by frame, in signal handlers and at safepoints, and methods and classes
 * without jmethodIDs. C and C++.
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

enum ASGST_Capabilities {
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
  ASGST_FRAME_NON_JAVA = 4,     /* C, C++, stubs */
  /* Continuation.enterSpecial: before it stand the frames of a continuation, as which a virtual
     thread runs, and behind it those of its carrier. The first of all frames where the
     continuation is just being entered or left. */
  ASGST_FRAME_CONTINUATION = 5,
  /* The same; frames between the one before and this one are missing: they are frozen, in the
     heap, where only handlers of queues are given them. */
  ASGST_FRAME_CONTINUATION_FROZEN = 6
};

typedef struct {
  uint8_t type;        /* ASGST_FrameTypeId */
  int comp_level;      /* 0 interpreted, 1 to 3 C1, 4 C2 or JVMCI, -1 undefined */
  int bci;             /* -1 where there is none, as in native methods */
  ASGST_Method method; /* null in frames that are not Java's */
  void* pc;
  /* Both null in frames that are in the heap. */
  void* sp; /* inlined frames have that of the frame they are in */
  void* fp; /* the frame pointer register, which compiled code may use otherwise */
} ASGST_Frame;

enum ASGST_Options {
  ASGST_INCLUDE_NON_JAVA_FRAMES = 1,
  ASGST_INCLUDE_NON_JAVA_THREADS = 2,
  ASGST_WALK_DURING_UNSAFE_STATES = 4,
  /* The prototype has 2 for this one, which JEP 435 has for another option. */
  ASGST_END_ON_FIRST_JAVA_FRAME = 8, /* ends before the topmost method with bytecodes, see there */
  ASGST_END_AT_CONTINUATION = 64,    /* ends with the first frame of a continuation's entry, instead
                                        of going on into the carrier */
  ASGST_END_AT_FRAME_MARK = 128      /* ends with the newest marked frame, see there */
};

/* What the walked thread is doing; results above 0 of ASGST_RunWithIterator. */
enum ASGST_TRACE_KIND {
  ASGST_JAVA_TRACE = 1,
  ASGST_CPP_TRACE = 2,
  ASGST_NON_JAVA_TRACE = 2, /* the prototype's name for all that are not Java's */
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
  ASGST_CONTAINED_FAULT = -23,        /* a walk of another thread faulted: a bug of the walk */
  ASGST_INVALID_ARGUMENT = -24,       /* a null handler or frame */
  ASGST_SAMPLE_LEFT = -25,            /* of a queue: the sampled frame had been left, see there */
  ASGST_FAULTS_BLOCKED = -26,         /* the calling thread blocks SIGSEGV or SIGBUS */
  ASGST_FRAMES_FROZEN = -27,          /* come to the end; frames are missing, which are in the heap:
                                         where the last ASGST_FRAME_CONTINUATION_FROZEN stood */
  ASGST_AT_FRAME_MARK = -28           /* come to the end: of a marked frame */
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
 * Walks read what may be unreadable: SIGSEGV and SIGBUS must not be blocked, as by a signal handler
 * with a full sa_mask. Such a handler is told ASGST_FAULTS_BLOCKED, here and by ASGST_Enqueue; it
 * is looked up once for each place that calls.
 */
JNIEXPORT int JNICALL ASGST_RunWithIterator(void* ucontext, int32_t options,
                                            ASGST_IteratorHandler fun, void* argument);

/*
 * The same from a frame instead of a context, on whichever stack of the VM's threads sp is. If that
 * is another thread's, it has to be halted, and faults of the walk are contained.
 */
JNIEXPORT int JNICALL ASGST_RunWithIteratorFromFrame(void* sp, void* fp, void* pc, int options,
                                                     ASGST_IteratorHandler fun, void* argument);

/*
 * 1 and the next frame, ASGST_NO_FRAME at the end, or an error, of which *frame is cleared. With
 * ASGST_END_ON_FIRST_JAVA_FRAME it ends before the first method that is not native, with type, pc,
 * sp and fp of that one in *frame. Async-signal-safe.
 */
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

/* ---- Safepoint queues (ASGST_REGISTER_QUEUE) -------------------------------------------------- */

/*
 * A signal handler notes where the thread is (ASGST_Enqueue). At the thread's next safepoint, which
 * is at the latest where the frame noted is returned from, the queue's handler is called for each
 * element with an iterator over the stack as it was.
 *
 * An ASGST_Queue* belongs to one thread, and ends with ASGST_DeregisterQueue or with the thread. A
 * queue that has ended is never taken for another one: every function refuses it for ever.
 */
typedef struct ASGST_Queue ASGST_Queue;

/*
 * Called on the queue's thread, at a safepoint of it alone, in the order of the calls to
 * ASGST_Enqueue, once for each that returned a kind. It may allocate, take locks, iterate, and call
 * any function of this header. It must return, and must not call JNI or JVMTI, wait for what other
 * threads do at safepoints, or throw.
 *
 * The iterator ends with the handler. Its first frame is the topmost Java frame, native methods
 * included, as it was when ASGST_Enqueue was called. A virtual thread's trace is whole: frames that
 * are frozen are given, too, unless the thread was noted while it was entering or thawing its
 * continuation and none of its frames was on the stack (ASGST_FRAME_CONTINUATION_FROZEN). Of a sample that cannot be told any more it
 * gives an error and no frame:
 *   ASGST_SAMPLE_LEFT   the frame was left without a safepoint: it threw, was sampled behind the
 *                       poll of its return, jumped to another method, or became another activation
 *   ASGST_THREAD_EXIT   the thread ended first
 * A frame that is deoptimised, replaced on the stack (OSR) or frozen with its virtual thread is
 * told before that.
 */
typedef void (*ASGST_Handler)(ASGST_Iterator* iterator, void* queue_arg, void* arg);

/*
 * A queue of `size` elements for the thread of `env` (null: the calling one). Several for one
 * thread are handled in the order of their registration. `options` (ASGST_Options) hold for the
 * iterators; ASGST_WALK_DURING_UNSAFE_STATES lets elements be enqueued in such states, too.
 *
 * Null: the thread is none of Java's or is ending, size is not within 1 and 1,048,576, `fun` is
 * null, there are 65,536 queues already, or no memory. Any thread; not for signal handlers.
 */
JNIEXPORT ASGST_Queue* JNICALL ASGST_RegisterQueue(JNIEnv* env, int size, int options,
                                                   ASGST_Handler fun, void* argument);

/*
 * Ends a queue of the thread of `env` (null: the calling one). Its elements are dropped: those
 * whose handler has not been called are not told, also when a handler of the queue itself calls
 * this. By another thread: a handler may still run until that thread's current safepoint is over.
 *
 * False for what is no queue of that thread. Any thread, handlers too; not for signal handlers.
 */
JNIEXPORT bool JNICALL ASGST_DeregisterQueue(JNIEnv* env, ASGST_Queue* queue);

/*
 * Notes the topmost Java frame of the queue's thread, which was interrupted with `ucontext` (null:
 * only when it is outside Java), and asks for a safepoint of that thread. What is enqueued while the
 * queue's elements are being handled is told at the next safepoint.
 *
 * Returns a kind (> 0), or an error, when nothing is enqueued: ASGST_ENQUEUE_NO_QUEUE for null and
 * for a queue that has ended, ASGST_ENQUEUE_FULL_QUEUE, ASGST_ENQUEUE_OTHER_ERROR while the queue is
 * being resized, or an error of ASGST_RunWithIterator. Async-signal-safe. On the queue's thread, or
 * while that is stopped.
 */
JNIEXPORT int JNICALL ASGST_Enqueue(ASGST_Queue* queue, void* ucontext, void* argument);

typedef struct {
  void* pc; /* of the topmost Java frame */
  void* fp;
  void* sp;
  void* arg;
} ASGST_QueueElement;

/*
 * What ASGST_Enqueue would note of the calling thread; arg is null. Its result, but that no queue is
 * asked; *element is unchanged by errors. Async-signal-safe.
 */
JNIEXPORT int JNICALL ASGST_GetEnqueuableElement(void* ucontext, ASGST_QueueElement* element);

/*
 * The nth element from the oldest on (0), or from the youngest (-1) back; null when there is none.
 * Until the queue's next safepoint ends, its arg may be changed: the handler gets what is there
 * then. What else is changed has no effect. Elements stay in the queue while they are handled.
 *
 * Async-signal-safe. On the queue's thread, or while that is stopped.
 */
JNIEXPORT ASGST_QueueElement* JNICALL ASGST_GetQueueElement(ASGST_Queue* queue, int n);

/*
 * Resizes when the queue's next safepoint ends (the current one in a handler); with more elements
 * than that in it, at a later one. Nothing for sizes outside those of ASGST_RegisterQueue, or when
 * there is no memory. Async-signal-safe. On the queue's thread, or while that is stopped.
 */
JNIEXPORT void JNICALL ASGST_ResizeQueue(ASGST_Queue* queue, int size);

typedef struct {
  jint size;     /* elements */
  jint capacity; /* and how many there is room for */
  jint attempts; /* calls of ASGST_Enqueue since its elements were last handled, errors included */
} ASGST_QueueSizeInfo;

/* All 0 for what is no queue. Async-signal-safe; exact on the queue's thread only. */
JNIEXPORT ASGST_QueueSizeInfo JNICALL ASGST_GetQueueSizeInfo(ASGST_Queue* queue);

/*
 * Called as ASGST_Handler is, around the handling of a queue that is not empty; `iterator` is over
 * the stack at the safepoint, null when none was asked for.
 */
typedef void (*ASGST_OnQueueSafepointHandler)(ASGST_Queue* queue, ASGST_Iterator* iterator,
                                              void* arg);

/* Null removes it. The second is not called for a queue that a handler ended. Any thread; not for
   signal handlers. */
JNIEXPORT void JNICALL ASGST_SetOnQueueProcessingStart(ASGST_Queue* queue, int options,
                                                       bool offerIterator,
                                                       ASGST_OnQueueSafepointHandler before,
                                                       void* arg);
JNIEXPORT void JNICALL ASGST_SetOnQueueProcessingEnd(ASGST_Queue* queue, int options,
                                                     bool offerIterator,
                                                     ASGST_OnQueueSafepointHandler end, void* arg);

/*
 * When the VM ends, threads stop wherever they are: elements that were not told until then are not.
 */

/* ---- Frame marks (ASGST_MARK_FRAME) ----------------------------------------------------------- */

/*
 * While a frame is on the stack its callers stay what they are. So who has walked them once keeps
 * them, marks the frame, and walks down to it only (ASGST_END_AT_FRAME_MARK): the frames of that
 * walk, followed by the kept callers of the marked frame, are what a whole walk gives. This holds
 * until the mark's handler is called, in signal handlers too, at each instruction.
 *
 * A marked frame is a physical one: what is inlined in it belongs to it. It is walked, since its bci
 * changes. Of its callers type, method, bci, comp_level, pc and sp stay, also when they are going to
 * be deoptimised. Kept callers are of one way of walking: the same options, and frozen frames, which
 * handlers are given and signal handlers are not, with both or neither.
 *
 * A mark belongs to one thread, in a virtual thread to its carrier, and ends with
 * ASGST_RemoveFrameMark or with the thread. One that has ended is never taken for another: every
 * function refuses it for ever.
 */
typedef struct ASGST_FrameMark ASGST_FrameMark;

/*
 * Called on the mark's thread when its frame is left, before the caller goes on: it returns, throws
 * or is popped; is deoptimised or replaced on the stack (OSR); its virtual thread yields. It may be
 * called when that is only tried: a yield that is pinned, a single step (JVMTI) of the marked frame.
 * The mark then marks no frame, until it is moved. Handlers of frames that are left together are
 * called for the newest first.
 *
 * The iterator is over the frames that stay: from the caller on, frozen ones included; where a virtual
 * thread yields, from Continuation.enterSpecial on. Where there is no Java frame any more it gives
 * ASGST_NO_TOP_JAVA_FRAME. It ends with the handler. What a handler may do is as for ASGST_Handler.
 */
typedef void (*ASGST_FrameMarkHandler)(ASGST_FrameMark* mark, ASGST_Iterator* iterator, void* arg);
typedef ASGST_FrameMarkHandler FrameMarkHandler; /* the prototype's name */

/*
 * A mark for the thread of `env` (null: the calling one), of no frame. `options` (ASGST_Options) hold
 * for its iterators. Null: the thread is none of Java's or is ending, `handler` is null, there are
 * 65,536 marks already, or no memory. Any thread; not for signal handlers.
 */
JNIEXPORT ASGST_FrameMark* JNICALL ASGST_RegisterFrameMark(JNIEnv* env,
                                                           ASGST_FrameMarkHandler handler,
                                                           int options, void* arg);

/*
 * Marks the Java frame that has `new_sp` (of an ASGST_Frame), and no other any more. Null, and what is
 * in no frame that can be marked: none, see ASGST_GetFrameMarkStackPointer. Not to be marked: the
 * thread's topmost Java frame, which may be past the poll of its return; in a mark's handler only
 * what is left; Continuation.enterSpecial; a frame that is frozen.
 *
 * On the mark's thread: in handlers of queues and marks, or in native code. Not for signal handlers.
 * It takes a walk down to the frame.
 */
JNIEXPORT void JNICALL ASGST_MoveFrameMark(ASGST_FrameMark* mark, void* new_sp);

/*
 * What ASGST_MoveFrameMark was last given; null when no frame is marked, and for what is no mark.
 * Async-signal-safe.
 */
JNIEXPORT void* JNICALL ASGST_GetFrameMarkStackPointer(ASGST_FrameMark* mark);

/*
 * Ends a mark. Its handler is not called any more; by another thread: it may still be running. Nothing
 * for what is no mark. Any thread, handlers too; not for signal handlers.
 */
JNIEXPORT void JNICALL ASGST_RemoveFrameMark(ASGST_FrameMark* mark);

/*
 * Which mark an iterator with ASGST_END_AT_FRAME_MARK has ended at (ASGST_State is
 * ASGST_AT_FRAME_MARK); null before, and when it comes to the end of the stack. It ends at the newest
 * marked frame, that is the one nearest to the top; of several marks of one frame it tells the one
 * that was registered first. Async-signal-safe.
 */
JNIEXPORT ASGST_FrameMark* JNICALL ASGST_GetFrameMark(ASGST_Iterator* iterator);

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
  jint idnum;    /* as of ASGST_GetMethodIdNum and ASGST_GetClassIdNum */
  jlong class_idnum;
} ASGST_MethodInfo;

typedef struct {
  char* class_name; /* as in signatures, without L and ;: java/lang/String */
  int class_name_length;
  char* generic_class_name;
  int generic_class_name_length;
  int modifiers; /* access flags of the class file: a nested class is never private or static */
  jlong idnum;   /* as of ASGST_GetClassIdNum */
} ASGST_ClassInfo;

typedef struct {
  int start_bci;
  int line_number;
} ASGST_LineNumberEntry;
typedef ASGST_LineNumberEntry ASGST_MethodLineNumberEntry;

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

/* The prototype's names for the two. */
JNIEXPORT jint JNICALL ASGST_GetMethodLineNumber(ASGST_Method method, jint bci);
JNIEXPORT int JNICALL ASGST_GetMethodLineNumberTable(ASGST_Method method,
                                                     ASGST_MethodLineNumberEntry* entries,
                                                     int length);

/*
 * Numbers that redefinition does not change: of a method in its class, and of a class, which is
 * never given again. 0 for what is none. Async-signal-safe.
 */
JNIEXPORT jint JNICALL ASGST_GetMethodIdNum(ASGST_Method method);
JNIEXPORT jlong JNICALL ASGST_GetClassIdNum(ASGST_Class klass);

/* The class of a method; null for what is none. Async-signal-safe. */
JNIEXPORT ASGST_Class JNICALL ASGST_GetClass(ASGST_Method method);

/*
 * Null for null, and for what is no class or has no methods (arrays, primitive types). On a thread
 * that is attached and in native code; not for signal handlers. The second is a local reference.
 */
JNIEXPORT ASGST_Class JNICALL ASGST_JClassToClass(jclass klass);
JNIEXPORT jclass JNICALL ASGST_ClassToJClass(ASGST_Class klass);

/*
 * Null when the ID was not made before, for what is no method, and for the linkers of method handles
 * (linkToStatic and the like), which the VM makes without one. Async-signal-safe.
 */
JNIEXPORT jmethodID JNICALL ASGST_MethodToJMethodID(ASGST_Method method);

/* Null for an ID whose class was unloaded. Not for signal handlers. */
JNIEXPORT ASGST_Method JNICALL ASGST_JMethodIDToMethod(jmethodID method);

/*
 * Called when a class is unloaded, before its methods are freed, with all of them, those that
 * redefinition replaced while they ran included. What they are can still be asked for (by
 * ASGST_GetMethodInfo ...) in the handler, and not any more afterwards. At a safepoint or on a
 * thread of the collector: no JNI, no JVMTI, no waiting for Java threads. `redefined` is false: this
 * VM does not tell of methods that redefinition replaced before their class goes.
 */
typedef void (*ASGST_ClassUnloadHandler)(ASGST_Class klass, ASGST_Method* methods, int count,
                                         bool redefined, void* argument);

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
