/* A walker with a defect that PLANTED chooses, behind framestorm_walker.h: AsyncGetCallTrace, but
 * that every EVERY-th walk reads what is not mapped (1) or does not end (2), that takes the caller
 * for what runs (3), or that locks (4), or that every walk at a call leaves out the caller (5), or that
 * every walk leaves out the third frame (6). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jni.h>
#include <pthread.h>
#include <stdatomic.h>
#include <ucontext.h>

#include "framestorm_walker.h"

typedef struct {
  jint bci;
  jmethodID method;
} call_frame;
typedef struct {
  JNIEnv* env;
  jint num_frames;
  call_frame* frames;
} call_trace;

static void (*get_call_trace)(call_trace*, jint, void*);
static atomic_uint walks;
static volatile int spin = 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int framestorm_walker_abi(void) { return FRAMESTORM_WALKER_ABI; }

uint32_t framestorm_walker_capabilities(const char* options) {
  (void)options;
  return FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS;
}

int framestorm_walker_init(void* java_vm, const char* options) {
  (void)options;
  get_call_trace = (void (*)(call_trace*, jint, void*))dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
  return java_vm == NULL || get_call_trace == NULL;
}

__attribute__((noinline)) int planted_fault(const int* address) {
  return *(const volatile int*)address;
}
__attribute__((noinline)) void planted_hang(void) {
  while (spin) {
  }
}
__attribute__((noinline)) int planted_lock(void) { return pthread_mutex_trylock(&mutex); }

void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread) {
  const int now = atomic_fetch_add(&walks, 1) % EVERY == EVERY - 1;
  if (now && PLANTED == 1) trace->num_frames = planted_fault((const int*)16);
  if (now && PLANTED == 2) planted_hang();
  if (now && PLANTED == 4) planted_lock();
  /* Not thread-local: a shared object's first use of that in a thread allocates. */
  call_frame buffer[256];
  call_trace own = {(JNIEnv*)thread->jni_env, 0, buffer};
  get_call_trace(&own, depth < 256 ? depth : 256, (void*)ucontext);
#if PLANTED == 5
  const greg_t pc = ((const ucontext_t*)ucontext)->uc_mcontext.gregs[REG_RIP];
  if (own.num_frames > 2 && *(const unsigned char*)pc == 0xe8) {
    for (int i = 2; i < own.num_frames; ++i) buffer[i - 1] = buffer[i];
    --own.num_frames;
  }
#endif
#if PLANTED == 6
  if (own.num_frames > 3) {
    for (int i = 3; i < own.num_frames; ++i) buffer[i - 1] = buffer[i];
    --own.num_frames;
  }
#endif
  trace->num_frames = own.num_frames;
  for (int i = 0; i < own.num_frames; ++i) {
    const int wrong = PLANTED == 3 && i == 0 && own.num_frames > 1;
    const call_frame* from = &buffer[wrong ? i + 1 : i];
    /* AsyncGetCallTrace has -3 for native methods. */
    const framestorm_frame frame = {.method = from->method,
                                    .bci = from->bci < 0 ? -1 : from->bci,
                                    .type = FRAMESTORM_FRAME_JAVA};
    trace->frames[i] = frame;
  }
  /* It does not say where its traces end. */
  if (own.num_frames > 0) trace->status = FRAMESTORM_TRACE_TRUNCATED;
}
