/* A walker with one defect, chosen at compile time: every 64th walk crashes (PLANTED_CRASH),
 * overflows the stack (PLANTED_OVERFLOW), hangs (PLANTED_HANG: the 64th of each 1024) or gives a frame
 * of no method (PLANTED_WRONG_FRAME); every walk that follows another of its thread at once crashes, so
 * that only those do that are made to compare (PLANTED_AGAIN); every third has another result
 * (PLANTED_FICKLE). The others say that there are no frames. PLANTED_MOVED has none:
 * what it says changes with the VM, of which the clock is a part. For the tests of the agent. */
#include <stddef.h>
#include <time.h>

#include "framestorm_walker.h"

#if defined(PLANTED_OVERFLOW)
static int overflow(int n) {
  volatile char frame[256];
  frame[n & 255] = (char)n;
  return overflow(n + 1) + frame[n & 255];
}
#elif defined(PLANTED_AGAIN)
static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
#endif

int framestorm_walker_abi(void) { return FRAMESTORM_WALKER_ABI; }

uint32_t framestorm_walker_capabilities(const char* options) {
  (void)options;
  return FRAMESTORM_WALKS_SAME_THREAD | FRAMESTORM_WALKS_OTHER_THREADS;
}

int framestorm_walker_init(void* java_vm, const char* options) {
  (void)options;
  return java_vm == NULL;
}

void framestorm_walk(framestorm_trace* trace, int32_t depth, const void* ucontext,
                     const framestorm_thread* thread) {
  static unsigned walks;
  const unsigned walk = __atomic_add_fetch(&walks, 1, __ATOMIC_RELAXED);
  (void)ucontext;
  trace->num_frames = 0;
#if defined(PLANTED_CRASH)
  if (walk % 64 == 0) *(volatile int*)(uintptr_t)8 = depth;
#elif defined(PLANTED_OVERFLOW)
  if (walk % 64 == 0) trace->num_frames = overflow(0);
#elif defined(PLANTED_AGAIN)
  static const void* last_thread;
  static uint64_t last_end;
  if (thread->java_thread == last_thread && now_ns() - last_end < 10000)
    *(volatile int*)(uintptr_t)8 = 0;
  last_thread = thread->java_thread;
  last_end = now_ns();
#elif defined(PLANTED_HANG)
  if (walk % 1024 == 64) {
    for (volatile int on = 1; on;) {
    }
  }
#elif defined(PLANTED_WRONG_FRAME)
  if (walk % 64 == 0 && depth > 0) {
    const framestorm_frame wrong = {.method = thread->java_thread, .type = FRAMESTORM_FRAME_JAVA};
    trace->frames[0] = wrong;
    trace->num_frames = 1;
    trace->status = FRAMESTORM_TRACE_TRUNCATED;
  }
#elif defined(PLANTED_FICKLE)
  if (walk % 3 == 0) trace->num_frames = -1;
#elif defined(PLANTED_MOVED)
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (((uint64_t)now.tv_nsec >> 24 & 1) != 0) trace->num_frames = -1;
#else
#error "say which defect is planted"
#endif
  (void)depth;
  (void)thread;
}
