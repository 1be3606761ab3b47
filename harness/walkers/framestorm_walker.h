/* C ABI for stack walkers that live in a shared object: build against this header alone and give
 * the .so to `framestorm fuzz --walker plugin --walker-plugin FILE`. C and C++.
 *
 * All three functions are found by dlsym. framestorm_walk is called from signal handlers, on the
 * halted thread or on another one, with arbitrary mutations of the context, the stack and the
 * thread: it has to be async-signal-safe, must write nothing but *trace and frames[0..depth), and
 * may not assume that any address it finds is mapped. */
#ifndef FRAMESTORM_WALKER_H
#define FRAMESTORM_WALKER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FRAMESTORM_WALKER_ABI 1

typedef struct framestorm_frame {
  const void* pc; /* machine pc, or NULL where the walker does not know it */
  const void* sp; /* stack pointer of the frame, or NULL; strictly advancing where given */
  void* method;   /* jmethodID, or NULL for a frame that is not Java */
  int32_t bci;    /* -1: unknown; meaningless without method */
  int32_t type;   /* walker-defined, 0 where it has no types */
} framestorm_frame;

typedef struct framestorm_trace {
  int32_t num_frames; /* out: frames written, or a negative error code of the walker */
  framestorm_frame* frames;
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
/* Called once, outside signal context, with the JavaVM* the walks will be in. 0: ready. */
int framestorm_walker_init(void* java_vm);
/* One walk. `ucontext` is the halted thread's, maybe NULL; `depth` may be 0 or negative. */
void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread);

#ifdef __cplusplus
}
#endif
#endif
