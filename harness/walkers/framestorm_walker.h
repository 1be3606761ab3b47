/* C ABI for stack walkers that live in a shared object: build against this header alone and give
 * the .so to `framestorm fuzz --walker plugin --walker-plugin FILE[=OPTIONS]`. C and C++.
 *
 *   framestorm_walker_abi             which version of this header it is built against
 *   framestorm_walker_capabilities    what it declares; oracles hold it to that and to no more
 *   framestorm_walker_init            once
 *   framestorm_walk                   one walk
 *   framestorm_walker_thread_start,   optional: a Java thread starts, ends
 *   framestorm_walker_thread_end
 *   framestorm_walker_abandoned       optional: the last walk on this thread did not come to its end
 *
 * All are found by dlsym. A .so of ABI 1, which has the frames and the functions of that version, is
 * still accepted: it walks in both modes, its traces may be cut, and nothing else is known of it.
 *
 * framestorm_walk and framestorm_walker_abandoned are called in signal handlers, with arbitrary
 * mutations of the context, the stack and the thread. They have to be async-signal-safe, must write
 * nothing but *trace and frames[0..depth), and may not assume that any address they find is mapped.
 * They may block signals as long as the mask is what it was when they return.
 *
 * Signal handlers. A walker that declares FRAMESTORM_CONTAINS_FAULTS may install handlers of its own
 * in init, as a profiler does in a process of its own, and may rely on this:
 *   - They run on the stack that the walk runs on, without an alternate signal stack, as HotSpot's
 *     do on Linux: what setjmp saved is above the handler's frame.
 *   - The previous action that sigaction gives them is HotSpot's, with HotSpot's flags.
 *   - Of a fault inside a walk the handler of SIGSEGV or SIGBUS is called before HotSpot's and before
 *     framestorm's. When it returns or jumps, the fault is counted and is no finding. When it passes
 *     the fault on, the walk has not contained it.
 * Faults outside walks are HotSpot's. Handlers of other signals are not called during a walk. */
#ifndef FRAMESTORM_WALKER_H
#define FRAMESTORM_WALKER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* NOLINTBEGIN(readability-identifier-naming): as C names things */

#define FRAMESTORM_WALKER_ABI 2

/* What framestorm_walker_capabilities returns: at least one of the first two. */
#define FRAMESTORM_WALKS_SAME_THREAD 1u      /* on the halted thread, in its signal handler */
#define FRAMESTORM_WALKS_OTHER_THREADS 2u    /* of a halted thread, on another one */
#define FRAMESTORM_CONTAINS_FAULTS 4u        /* recovers from faults in handlers of its own */
#define FRAMESTORM_STOPS_AT_CONTINUATIONS 8u /* a trace may end where a continuation begins */
#define FRAMESTORM_TRACES_COMPLETE 16u /* no trace is ever truncated; one that is: a finding */
#define FRAMESTORM_METHOD_POINTERS 32u /* framestorm_frame.method is a Method* */
#define FRAMESTORM_NO_JAVA_FRAMES 64u  /* it knows machine frames only, and names no Java method */

/* What a frame is: framestorm_frame.type. */
#define FRAMESTORM_FRAME_JAVA 1 /* interpreted or compiled */
#define FRAMESTORM_FRAME_INTERPRETED 2
#define FRAMESTORM_FRAME_COMPILED 3
#define FRAMESTORM_FRAME_INLINED 4       /* Java code, inlined into the frame that follows */
#define FRAMESTORM_FRAME_NATIVE_METHOD 5 /* a Java method without bytecodes */
#define FRAMESTORM_FRAME_STUB 6          /* code that the VM made: a stub, an adapter */
#define FRAMESTORM_FRAME_C 7             /* C, C++ and the like */
/* As a trace's last one: stands for the frames that were not found, `name` says why. It makes the
 * trace a truncated one. */
#define FRAMESTORM_FRAME_ERROR 8

/* A walk writes each member of the frames that it gives: they hold anything before. */
typedef struct framestorm_frame {
  const void* pc; /* machine pc, or NULL where the walker does not know it */
  const void* sp; /* stack pointer of the frame, or NULL. Where given it advances strictly, but for
                     inlined frames: theirs is that of the frame they are inlined into */
  void* method;   /* of types 1 to 5: jmethodID, or Method* as declared; of the others NULL */
  const char* name; /* of the others: the function, the stub, what went wrong; or NULL. Readable as
                       long as the .so is loaded */
  int32_t bci;      /* of the method's bytecodes, -1: unknown, or no method */
  uint8_t type;     /* FRAMESTORM_FRAME_... */
  uint8_t reserved[3];
} framestorm_frame;

/* How a trace ends: framestorm_trace.status. */
#define FRAMESTORM_TRACE_COMPLETE 0  /* at the thread's first frame, or at the depth */
#define FRAMESTORM_TRACE_TRUNCATED 1 /* before: there are callers that the walker did not find */
#define FRAMESTORM_TRACE_ERROR 2     /* there is no trace; num_frames is 0 or an error code */

typedef struct framestorm_trace {
  int32_t num_frames;       /* out: frames written, or a negative error code of the walker */
  int32_t status;           /* out: FRAMESTORM_TRACE_..., complete at first */
  framestorm_frame* frames; /* in: where they go */
  const char* reason; /* out: why truncated or no trace, NULL at first. As framestorm_frame.name */
  uint64_t contained_faults; /* out: from which the walker recovered in this walk; 0 at first */
} framestorm_trace;

typedef struct framestorm_thread {
  void* java_thread;      /* JavaThread*, or NULL */
  void* jni_env;          /* JNIEnv*, or NULL */
  int32_t tid;            /* of the halted thread */
  int32_t same_thread;    /* 1: called on the halted thread */
  const void* stack_base; /* highest address */
  const void* stack_end;  /* lowest address */
} framestorm_thread;

/* Returns FRAMESTORM_WALKER_ABI. */
int framestorm_walker_abi(void);
/* FRAMESTORM_..., all that holds with these options. Before init, also in a process without a JVM;
 * any number of times. */
uint32_t framestorm_walker_capabilities(const char* options);
/* Called once, outside signal context, with the JavaVM* the walks will be in. `options`: what stands
 * behind the file's name in --walker-plugin FILE=OPTIONS, "" for none. 0: ready. */
int framestorm_walker_init(void* java_vm, const char* options);
/* One walk. `ucontext` is the halted thread's, maybe NULL; `depth` may be 0 or negative. */
void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread);
/* On the thread itself, outside signal context, after init. Threads that were there before init have
 * no start. */
void framestorm_walker_thread_start(const framestorm_thread* thread);
void framestorm_walker_thread_end(const framestorm_thread* thread);
/* A walk of `thread` faulted, hung or called what ends a process, and was abandoned where it was:
 * locks of the walker's that it held are still taken. On the thread that walked, right after. */
void framestorm_walker_abandoned(const framestorm_thread* thread);

/* NOLINTEND(readability-identifier-naming) */
#ifdef __cplusplus
}
#endif
#endif
