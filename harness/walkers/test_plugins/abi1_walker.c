/* A walker as it was built against the header of ABI 1: one frame, the context's. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct frame {
  const void* pc;
  const void* sp;
  void* method;
  int32_t bci;
  int32_t type;
};
struct trace {
  int32_t num_frames;
  struct frame* frames;
};

int framestorm_walker_abi(void) { return 1; }

int framestorm_walker_init(void* java_vm) { return java_vm == NULL; }

void framestorm_walk(struct trace* trace, int32_t depth, const void* ucontext, const void* thread) {
  (void)thread;
  if (ucontext == NULL || depth <= 0) return;
  const greg_t* const registers = ((const ucontext_t*)ucontext)->uc_mcontext.gregs;
  const struct frame top = {(const void*)registers[REG_RIP], (const void*)registers[REG_RSP], NULL,
                            -1, 77};
  trace->frames[0] = top;
  trace->num_frames = 1;
}
