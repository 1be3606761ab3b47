/* A small stack walker behind framestorm_walker.h that reads blindly: where an address is not mapped,
 * its own SIGSEGV handler jumps out of the walk, as profilers do that walk HotSpot's frames by
 * themselves. It follows frame pointers and is otherwise as frame_pointer_walker.c.
 *
 * What matters in such a walker:
 *   - The handler takes faults of its own walks only, and hands all others to whoever was there.
 *   - Jumping out of a handler leaves its signal blocked unless sigsetjmp has saved the mask.
 *   - The pointer to where it jumps is thread-local and in static TLS: a shared object's other
 *     thread-local variables are allocated at their first use. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "framestorm_walker.h"

static __thread sigjmp_buf* landing __attribute__((tls_model("initial-exec")));
static struct sigaction previous_segv;
static struct sigaction previous_bus;

static void on_fault(int signo, siginfo_t* info, void* ucontext) {
  if (landing != NULL) siglongjmp(*landing, 1);
  const struct sigaction* previous = signo == SIGSEGV ? &previous_segv : &previous_bus;
  if ((previous->sa_flags & SA_SIGINFO) != 0) {
    previous->sa_sigaction(signo, info, ucontext);
  } else if (previous->sa_handler != SIG_IGN && previous->sa_handler != SIG_DFL) {
    previous->sa_handler(signo);
  }
}

/* The flags are those of HotSpot's own handler: no other stack. */
static int take_over(int signo, struct sigaction* previous) {
  struct sigaction own;
  if (sigaction(signo, NULL, previous) != 0) return 1;
  own = *previous;
  own.sa_sigaction = on_fault;
  own.sa_flags |= SA_SIGINFO;
  return sigaction(signo, &own, NULL);
}

int framestorm_walker_abi(void) { return FRAMESTORM_WALKER_ABI; }

uint32_t framestorm_walker_capabilities(const char* options) {
  (void)options;
  return FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS |
         FRAMESTORM_CONTAINS_FAULTS | FRAMESTORM_NO_JAVA_FRAMES;
}

int framestorm_walker_init(void* java_vm, const char* options) {
  (void)options;
  return java_vm == NULL || take_over(SIGSEGV, &previous_segv) != 0 ||
         take_over(SIGBUS, &previous_bus) != 0;
}

void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread) {
  (void)thread;
  if (ucontext == NULL) {
    trace->num_frames = -1;
    trace->status = FRAMESTORM_TRACE_ERROR;
    trace->reason = "no context";
    return;
  }
  greg_t registers[NGREG];
  memcpy(registers, (const char*)ucontext + offsetof(ucontext_t, uc_mcontext.gregs),
         sizeof registers);
  uintptr_t pc = (uintptr_t)registers[REG_RIP];
  uintptr_t sp = (uintptr_t)registers[REG_RSP];
  uintptr_t fp = (uintptr_t)registers[REG_RBP];
  /* What changes between sigsetjmp and the jump has to be volatile. */
  volatile int32_t count = 0;
  sigjmp_buf here;
  if (sigsetjmp(here, 1) == 0) {
    landing = &here;
    while (count < depth) {
      const framestorm_frame frame = {
          .pc = (const void*)pc, .sp = (const void*)sp, .bci = -1, .type = FRAMESTORM_FRAME_C};
      trace->frames[count] = frame;
      count = count + 1;
      const uintptr_t* const link = (const uintptr_t*)fp;
      if (fp < sp || fp % sizeof *link != 0 || fp > UINTPTR_MAX - 2 * sizeof *link) break;
      sp = fp + 2 * sizeof *link;
      pc = link[1];
      fp = link[0];
      if (pc == 0) break;
    }
    if (count < depth && pc != 0) {
      trace->status = FRAMESTORM_TRACE_TRUNCATED;
      trace->reason = "no frame pointer";
    }
  } else {
    trace->status = FRAMESTORM_TRACE_TRUNCATED;
    trace->reason = "a fault";
    trace->contained_faults = 1;
  }
  landing = NULL;
  trace->num_frames = count;
}

void framestorm_walker_abandoned(const framestorm_thread* thread) {
  (void)thread;
  landing = NULL;
}
