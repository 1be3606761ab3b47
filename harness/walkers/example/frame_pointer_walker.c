/* A small stack walker behind framestorm_walker.h: follows frame pointers. It knows nothing of Java
 * and is right only where code keeps them, but it is safe: async-signal-safe, and it reads memory
 * through the kernel, so that no address can make it fault.
 *
 * With -DBROKEN it has three defects that framestorm finds: it writes one frame too many when the
 * stack is deeper than the array, trusts frame pointers, and allocates. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "framestorm_walker.h"

#ifdef BROKEN
static void* volatile block;

static int read_words(uintptr_t address, uintptr_t words[2]) {
  block = malloc(64);
  free(block);
  memcpy(words, (const void*)address, 2 * sizeof words[0]);
  return 1;
}
#else
/* process_vm_readv gives an error for an address that nothing maps. */
static int read_words(uintptr_t address, uintptr_t words[2]) {
  const int saved_errno = errno;
  const size_t size = 2 * sizeof words[0];
  const struct iovec to = {words, size};
  const struct iovec from = {(void*)address, size};
  const long got = syscall(SYS_process_vm_readv, getpid(), &to, 1L, &from, 1L, 0L);
  errno = saved_errno;
  return got == (long)size;
}
#endif

int framestorm_walker_abi(void) { return FRAMESTORM_WALKER_ABI; }

uint32_t framestorm_walker_capabilities(const char* options) {
  (void)options;
  return FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS | FRAMESTORM_NO_JAVA_FRAMES;
}

int framestorm_walker_init(void* java_vm, const char* options) {
  (void)options;
  return java_vm == NULL;
}

void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread) {
  trace->num_frames = 0;
  if (ucontext == NULL) {
    trace->num_frames = -1;
    return;
  }
  /* The context may be misaligned. */
  greg_t registers[NGREG];
  memcpy(registers, (const char*)ucontext + offsetof(ucontext_t, uc_mcontext.gregs),
         sizeof registers);
  uintptr_t pc = (uintptr_t)registers[REG_RIP];
  uintptr_t sp = (uintptr_t)registers[REG_RSP];
  uintptr_t fp = (uintptr_t)registers[REG_RBP];
  const uintptr_t base = (uintptr_t)thread->stack_base;

#ifdef BROKEN
  const int32_t room = depth + 1;
#else
  const int32_t room = depth;
#endif
  int32_t count = 0;
  while (count < room) {
    framestorm_frame* frame = &trace->frames[count++];
    frame->pc = (const void*)pc;
    frame->sp = (const void*)sp;
    frame->method = NULL;
    frame->name = NULL;
    frame->bci = -1;
    frame->type = FRAMESTORM_FRAME_C;
    /* fp points at the caller's fp, its return address is next. */
    uintptr_t words[2];
#ifdef BROKEN
    if (fp == 0) break;
    (void)base;
#else
    if (fp < sp || fp >= base || fp % sizeof(uintptr_t) != 0) break;
#endif
    if (!read_words(fp, words) || fp + 2 * sizeof words[0] <= sp) break;
    sp = fp + 2 * sizeof words[0];
    fp = words[0];
    pc = words[1];
    if (pc == 0) break;
  }
  trace->num_frames = count > depth ? depth : count;
  /* The first frame of a thread has no caller; a chain that ends before it has lost some. */
  if (count < depth && pc != 0) {
    trace->status = FRAMESTORM_TRACE_TRUNCATED;
    trace->reason = "no frame pointer";
  }
}
