/* AsyncGetCallTrace behind ABI 2, which is wrong in the ways that its options name, joined by "+":
 *
 *   same, other        the modes that it declares; both without
 *   complete           declares that no trace is truncated
 *   unknown            declares what no header has
 *   cut                leaves out all but two frames
 *   outermost          leaves out the outermost frame
 *   rarely             but only in one of 23 walks
 *   said               and says so by the trace's status
 *   error-frame        or by its last frame
 *   pointers           gives Method*
 *   no-method          gives one that is none
 *   typeless           gives frames without a type
 *   bad-status         gives a status that there is not
 *   bad-reason         says it with a pointer that cannot be read
 *   overrun            writes behind its frames, and recovers where that faults
 *   near               faults in each walk, and recovers where its handler stands right below it
 *   mask               blocks a signal for a while
 *   mask-left          for good
 *   forgets-lock       faults while it holds its lock, and does not hear that it did
 *   drops-lock         but does hear it
 *   blind              reads where r15 points if that is no address
 *   threads            walks only threads that it has seen start, and none that has ended */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jni.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
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

enum { MOST = 2048, THREADS = 64 };

/* How an ID leads to a Method where it is not the address of its address: the test knows. */
const void* (*declared_walker_look_up)(jmethodID);

static void (*get_call_trace)(call_trace*, jint, void*);
static char chosen[256];
static int lock_held;
static int32_t started[THREADS];
static struct sigaction previous;
/* Of each thread: several walk at once. */
static __thread sigjmp_buf* landing __attribute__((tls_model("initial-exec")));

static int has(const char* options, const char* name) {
  const size_t size = strlen(name);
  for (const char* at = strstr(options, name); at != NULL; at = strstr(at + 1, name)) {
    if ((at == options || at[-1] == '+') && (at[size] == '+' || at[size] == 0)) return 1;
  }
  return 0;
}
static int is(const char* name) { return has(chosen, name); }

static void on_fault(int signo, siginfo_t* info, void* ucontext) {
  const char here = 0;
  /* As async-profiler, which looks for its jump buffer up from the handler's sp. */
  const uintptr_t distance = (uintptr_t)landing - (uintptr_t)&here;
  if (landing != NULL && (!is("near") || distance < 65536)) siglongjmp(*landing, 1);
  previous.sa_sigaction(signo, info, ucontext);
}

int framestorm_walker_abi(void) { return FRAMESTORM_WALKER_ABI; }

uint32_t framestorm_walker_capabilities(const char* options) {
  uint32_t modes = FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS;
  if (has(options, "same")) modes = FRAMESTORM_WALKS_SAME_THREAD;
  if (has(options, "other")) modes = FRAMESTORM_WALKS_OTHER_THREADS;
  if (has(options, "none")) modes = 0;
  return modes | (has(options, "complete") ? FRAMESTORM_TRACES_COMPLETE : 0) |
         (has(options, "pointers") || has(options, "no-method") ? FRAMESTORM_METHOD_POINTERS : 0) |
         (has(options, "overrun") || has(options, "near") ? FRAMESTORM_CONTAINS_FAULTS : 0) |
         (has(options, "unknown") ? 1u << 31 : 0);
}

int framestorm_walker_init(void* java_vm, const char* options) {
  strncpy(chosen, options, sizeof chosen - 1);
  if (is("overrun") || is("near")) {
    struct sigaction own;
    sigaction(SIGSEGV, NULL, &previous);
    own = previous;
    own.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &own, NULL);
  }
  get_call_trace = (void (*)(call_trace*, jint, void*))dlsym(RTLD_DEFAULT, "AsyncGetCallTrace");
  return java_vm == NULL || get_call_trace == NULL;
}

void framestorm_walker_thread_start(const framestorm_thread* thread) {
  for (int i = 0; i < THREADS; ++i) {
    int32_t nobody = 0;
    if (__atomic_compare_exchange_n(&started[i], &nobody, thread->tid, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return;
    }
  }
}

void framestorm_walker_thread_end(const framestorm_thread* thread) {
  for (int i = 0; i < THREADS; ++i) {
    int32_t own = thread->tid;
    __atomic_compare_exchange_n(&started[i], &own, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
}

void framestorm_walker_abandoned(const framestorm_thread* thread) {
  (void)thread;
  if (is("drops-lock")) lock_held = 0;
}

static void write_behind(framestorm_frame* end) {
  sigjmp_buf here;
  landing = &here;
  if (sigsetjmp(here, 1) == 0) {
    /* Through to the unreadable page, as a walker does that does not count. */
    for (int i = 0; i < 2 * MOST; ++i) ((volatile framestorm_frame*)end)[i].bci = i;
  }
  landing = NULL;
}

static void recover(void) {
  sigjmp_buf here;
  landing = &here;
  if (sigsetjmp(here, 1) == 0) *(volatile int*)(uintptr_t)16 = 0;
  landing = NULL;
}

static int is_due(void) {
  static unsigned walks;
  /* A prime: the walks that are made of one sample come in rounds, of which it is each in turn. */
  return __atomic_add_fetch(&walks, 1, __ATOMIC_RELAXED) % 23 == 0;
}

static void take_lock(void) {
  lock_held = 1;
  *(volatile int*)(uintptr_t)16 = 0;
}

void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread) {
  /* Threads that are sampled walk at once. */
  static call_frame buffers[THREADS][MOST];
  static unsigned taken;
  static __thread unsigned own_buffer __attribute__((tls_model("initial-exec")));
  if (own_buffer == 0) own_buffer = __atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
  call_frame* const buffer = buffers[own_buffer % THREADS];
  if (is("threads")) {
    int seen = 0;
    for (int i = 0; i < THREADS; ++i) seen = seen || started[i] == thread->tid;
    if (!seen) {
      trace->num_frames = -100;
      trace->status = FRAMESTORM_TRACE_ERROR;
      return;
    }
  }
  if (is("blind") && ucontext != NULL) {
    const uintptr_t address = (uintptr_t)((const ucontext_t*)ucontext)->uc_mcontext.gregs[REG_R15];
    if (address >> 60 == 7) trace->num_frames = *(const volatile int*)address;
  }
  if (is("forgets-lock") || is("drops-lock")) {
    trace->num_frames = -200;
    if (lock_held) return;
    take_lock();
  }
  if (is("near")) recover();
  if (is("mask") || is("mask-left")) {
    sigset_t one;
    sigset_t before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &one, &before);
    if (is("mask")) pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  call_trace own = {(JNIEnv*)thread->jni_env, 0, buffer};
  get_call_trace(&own, depth < MOST ? depth : MOST, (void*)ucontext);
  trace->num_frames = own.num_frames;
  if (is("cut") && trace->num_frames > 2) trace->num_frames = 2;
  if (is("outermost") && trace->num_frames > 2 && (!is("rarely") || is_due())) {
    --trace->num_frames;
  }
  for (int i = 0; i < trace->num_frames; ++i) {
    /* AsyncGetCallTrace has -3 for native methods. */
    framestorm_frame frame = {.method = buffer[i].method,
                              .bci = buffer[i].bci < 0 ? -1 : buffer[i].bci,
                              .type = FRAMESTORM_FRAME_JAVA};
    if (is("pointers") && frame.method != NULL) {
      frame.method = declared_walker_look_up == NULL ? *(void**)frame.method
                                                     : (void*)declared_walker_look_up(frame.method);
    }
    if (is("no-method")) frame.method = thread->java_thread;
    if (is("typeless")) frame.type = 0;
    trace->frames[i] = frame;
  }
  if (is("error-frame") && trace->num_frames == 2) {
    const framestorm_frame error = {
        .name = "unknown caller", .bci = -1, .type = FRAMESTORM_FRAME_ERROR};
    trace->frames[1] = error;
  }
  if (is("said")) trace->status = FRAMESTORM_TRACE_TRUNCATED;
  if (is("said")) trace->reason = "two frames are enough";
  if (is("bad-status")) trace->status = 9;
  if (is("bad-reason")) trace->reason = (const char*)(uintptr_t)16;
  if (is("overrun")) write_behind(trace->frames + depth);
}
