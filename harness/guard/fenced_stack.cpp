#include "harness/guard/fenced_stack.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace framestorm {
namespace {

constexpr size_t kMaxStacks = 1024;
constexpr size_t kFenceBytes = size_t{64} << 10;

std::array<FencedStack, kMaxStacks> stacks;

bool thread_gone(int tid) { return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH; }

// A free slot: with a stack of that size when there is one, else one without a stack.
FencedStack* take(size_t size) {
  for (const bool reuse : {true, false}) {
    for (FencedStack& stack : stacks) {
      if (stack.taken.load()) {
        const int tid = stack.tid.load();
        // The kernel clears a detached thread's tid when it has left its stack for good.
        if (!reuse || stack.size != size || tid == 0 || !thread_gone(tid)) continue;
        int expected = tid;
        if (stack.tid.compare_exchange_strong(expected, 0)) return &stack;
        continue;
      }
      if (reuse ? stack.size != size : stack.size != 0) continue;
      bool expected = false;
      if (stack.taken.compare_exchange_strong(expected, true)) return &stack;
    }
  }
  return nullptr;
}

bool map_stack(FencedStack* slot, size_t size) {
  if (slot->size == size) return true;
  void* mapping = mmap(nullptr, size + 2 * kFenceBytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) return false;
  slot->stack = static_cast<char*>(mapping) + kFenceBytes;
  if (mprotect(slot->stack, size, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, size + 2 * kFenceBytes);
    return false;
  }
  slot->size = size;
  return true;
}

}  // namespace

FencedStack* fence_stack(const pthread_attr_t* attributes, pthread_attr_t* out) {
  int detached = PTHREAD_CREATE_JOINABLE;
  size_t size = 0;
  void* own_stack = nullptr;
  size_t own_size = 0;
  if (attributes == nullptr || pthread_attr_getdetachstate(attributes, &detached) != 0 ||
      detached != PTHREAD_CREATE_DETACHED || pthread_attr_getstacksize(attributes, &size) != 0 ||
      pthread_attr_getstack(attributes, &own_stack, &own_size) != 0) {
    return nullptr;
  }
  // glibc reports an unset stack address as "0 - size".
  if (reinterpret_cast<uintptr_t>(own_stack) + own_size != 0) return nullptr;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size = (size + page - 1) / page * page;
  FencedStack* slot = take(size);
  if (slot == nullptr) return nullptr;
  if (!map_stack(slot, size)) {
    give_back(slot);
    return nullptr;
  }
  pthread_attr_init(out);
  pthread_attr_setdetachstate(out, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstack(out, slot->stack, slot->size);
  return slot;
}

void give_back(FencedStack* stack) {
  stack->tid.store(0);
  stack->taken.store(false);
}

}  // namespace framestorm
