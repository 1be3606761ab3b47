// Unsafe-call interposer: libc functions a walk must not call are interposed by definitions
// in the executable (dlopen'ed libjvm and plugins bind to them through their PLT). Outside a walk
// they only forward. Inside a walk each call is recorded with the walker's stack, then forwarded,
// except for the terminal ones (abort, exit, stdio), which end the walk through the guard.
//
// Recorded: malloc calloc realloc free posix_memalign aligned_alloc memalign;
// pthread_mutex_lock/timedlock/trylock/unlock,
// pthread_rwlock_rdlock/tryrdlock/wrlock/trywrlock/unlock, pthread_cond_wait/timedwait,
// sem_wait/timedwait; dlopen dlclose dlsym dladdr dl_iterate_phdr; pthread_create.
// pthread_sigmask and sigprocmask are async-signal-safe: what is noted of them is whether the walk
// left another mask behind (oracle memory).
// Terminal: abort exit _exit _Exit quick_exit __assert_fail __stack_chk_fail; the printf family and
// its fortified (__*_chk) forms, fwrite fread fputs fputc putc putchar puts fgets fopen fopen64
// fclose fflush.
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

inline constexpr size_t kMaxUnsafeCalls = 4;
inline constexpr size_t kUnsafeStack = 24;

struct UnsafeCall {
  const char* function = nullptr;  // static storage: "malloc"
  uint32_t stack_size = 0;
  uintptr_t stack[kUnsafeStack] =
      {};  // as FaultRecord::stack; stack[0] is the caller of `function`
};

struct UnsafeCalls {
  uint32_t count = 0;  // all of them; the first kMaxUnsafeCalls are in `calls`
  UnsafeCall calls[kMaxUnsafeCalls];
  // pthread locks that it took and did not give back, when it returned.
  uint32_t locks_held = 0;
  // Whether the walk changed the signal mask by a call and did not put it back, as the guard does
  // then. Written by such calls only: who asks clears it before the walk.
  bool mask_changed = false;
};

namespace interposer {

// True while the calling thread is inside malloc and friends, or opens, flushes or closes a file, i.e.
// may hold the allocator's lock or that of glibc's list of files. A thread must not be halted there:
// the fuzz loop allocates and opens files. Async-signal-safe.
bool in_allocator();

// Ask the calling thread to run `action` as soon as it leaves the allocator (called on that thread,
// outside signal context). For a halt signal that arrived at the wrong moment. Async-signal-safe.
void on_allocator_exit(void (*action)());

// Whether the interposers are those that the process calls: they are in its executable, or in a
// library loaded ahead of libc (LD_PRELOAD). In a library that was loaded later they are never
// called, and no unsafe call is seen. Not async-signal-safe.
bool is_active();

// Called first thing on every new thread of the process, before its start routine, with that
// routine and its argument. nullptr to remove. Used to halt threads that HotSpot has not set up
// yet.
using ThreadStartHook = void (*)(void* (*start_routine)(void*), void* arg);
void set_thread_start_hook(ThreadStartHook hook);

// From now on threads get the stacks they ask for, and no hooks: for a process that is not the
// harness's own.
void leave_threads_alone();

// Called last thing on every thread that returns from its start routine, before glibc takes it down
// (with all signals blocked, so that nothing can halt it any more). nullptr to remove.
using ThreadEndHook = void (*)();
void set_thread_end_hook(ThreadEndHook hook);

}  // namespace interposer

}  // namespace framestorm
