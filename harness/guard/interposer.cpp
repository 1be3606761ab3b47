// The libc functions that a walk must not call, defined in the executable so that it and everything
// it loads bind to them. The dl* functions are stubs in arch_<machine>.cpp.
//
// Outside a walk each one forwards after a look at thread-local state. The allocator's real
// functions are ASan's where its runtime is in the process and glibc's __libc_* entries elsewhere:
// both exist before any constructor runs and need no symbol search. The others are found behind the
// executable in search order (RTLD_NEXT), at start or at first use.
#include "harness/guard/interposer.h"

#include "harness/guard/fenced_stack.h"
#include "harness/guard/sampler_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "harness/guard/unsafe_calls_record.h"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void __libc_free(void* block);
void* __libc_memalign(size_t alignment, size_t size);
[[gnu::weak]] void* __interceptor_malloc(size_t size);
[[gnu::weak]] void* __interceptor_calloc(size_t count, size_t size);
[[gnu::weak]] void* __interceptor_realloc(void* block, size_t size);
[[gnu::weak]] void __interceptor_free(void* block);
[[gnu::weak]] void* __interceptor_memalign(size_t alignment, size_t size);
}

namespace framestorm {

constinit std::atomic<interposer::ThreadStartHook> thread_start_hook{nullptr};
constinit std::atomic<interposer::ThreadEndHook> thread_end_hook{nullptr};
constinit std::atomic<bool> threads_left_alone{false};

namespace {

[[noreturn]] void die_unresolved(const char* name) {
  const char* parts[] = {"framestorm: guard: no real function behind the interposed ", name, "\n"};
  for (const char* part : parts) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, part, std::strlen(part));
  }
  __builtin_trap();
}

template <typename Function>
[[gnu::always_inline]] inline Function* real_allocator(Function* asan, Function* libc) {
  return asan != nullptr ? asan : libc;
}

using DlsymFunction = void*(void*, const char*);

// dlsym is interposed itself; dlvsym is not. Versions: libc since 2.34, libdl before.
DlsymFunction* real_dlsym() {
  static constinit std::atomic<DlsymFunction*> found{nullptr};
  DlsymFunction* function = found.load(std::memory_order_acquire);
  if (function == nullptr) {
    void* symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (symbol == nullptr) {
      symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    }
    if (symbol == nullptr) {
      die_unresolved("dlsym");
    }
    function = reinterpret_cast<DlsymFunction*>(symbol);
    found.store(function, std::memory_order_release);
  }
  return function;
}

// RTLD_NEXT without a version yields the default one (pthread_cond_wait has two).
void* find_real(const char* name) {
  void* symbol = real_dlsym()(RTLD_NEXT, name);
  if (symbol == nullptr) {
    die_unresolved(name);
  }
  return symbol;
}

void* find_default(const char* name) { return real_dlsym()(RTLD_DEFAULT, name); }

template <typename Function>
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}
  Function* get() {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) [[unlikely]] {
      function = reinterpret_cast<Function*>(find_real(name_));
      function_.store(function, std::memory_order_release);
    }
    return function;
  }

 private:
  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

// Resolved before main, so that the first call inside a walk does not search for symbols.
class ResolvedAtStart {
 public:
  explicit ResolvedAtStart(void (*resolve)()) { resolve(); }
};

struct ThreadStart {
  void* (*start_routine)(void*);
  void* arg;
  FencedStack* stack;  // null: glibc's
};

void* run_thread(void* boxed) {
  const ThreadStart start = *static_cast<ThreadStart*>(boxed);
  std::free(boxed);
  if (start.stack != nullptr) {
    start.stack->tid.store(gettid());
  }
  if (interposer::ThreadStartHook hook = thread_start_hook.load(std::memory_order_acquire)) {
    hook(start.start_routine, start.arg);
  }
  void* const result = start.start_routine(start.arg);
  if (interposer::ThreadEndHook hook = thread_end_hook.load(std::memory_order_acquire)) {
    hook();
  }
  return result;
}

}  // namespace

// Asm labels instead of the real names: the headers' exception specifications and the compiler's
// knowledge of malloc and printf do not apply to these definitions.
#define FRAMESTORM_INTERPOSE(result, name, ...)                                               \
  extern "C" [[gnu::visibility("default")]] result framestorm_##name(__VA_ARGS__) asm(#name); \
  extern "C" result framestorm_##name(__VA_ARGS__)

#define FRAMESTORM_REAL(name, type)               \
  static constinit Real<type> real_##name{#name}; \
  static const ResolvedAtStart resolved_##name {  \
    [] { real_##name.get(); }                     \
  }

#define FRAMESTORM_UNSAFE(name) const UnsafeCallScope unsafe_call(name, __builtin_frame_address(0))
#define FRAMESTORM_TERMINAL(name)               \
  if (walk_state.recovery.sp != 0) [[unlikely]] \
  end_walk_in_terminal_call(name, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)))

// Types and parameter lists cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)

// --- allocator ---

FRAMESTORM_INTERPOSE(void*, malloc, size_t size) {
  FRAMESTORM_UNSAFE("malloc");
  const AllocatorScope in_allocator;
  return real_allocator(&__interceptor_malloc, &__libc_malloc)(size);
}

FRAMESTORM_INTERPOSE(void*, calloc, size_t count, size_t size) {
  FRAMESTORM_UNSAFE("calloc");
  const AllocatorScope in_allocator;
  return real_allocator(&__interceptor_calloc, &__libc_calloc)(count, size);
}

FRAMESTORM_INTERPOSE(void*, realloc, void* block, size_t size) {
  FRAMESTORM_UNSAFE("realloc");
  const AllocatorScope in_allocator;
  return real_allocator(&__interceptor_realloc, &__libc_realloc)(block, size);
}

FRAMESTORM_INTERPOSE(void, free, void* block) {
  FRAMESTORM_UNSAFE("free");
  const AllocatorScope in_allocator;
  real_allocator(&__interceptor_free, &__libc_free)(block);
}

FRAMESTORM_INTERPOSE(void*, memalign, size_t alignment, size_t size) {
  FRAMESTORM_UNSAFE("memalign");
  const AllocatorScope in_allocator;
  return real_allocator(&__interceptor_memalign, &__libc_memalign)(alignment, size);
}

FRAMESTORM_INTERPOSE(void*, aligned_alloc, size_t alignment, size_t size) {
  FRAMESTORM_UNSAFE("aligned_alloc");
  const AllocatorScope in_allocator;
  return real_allocator(&__interceptor_memalign, &__libc_memalign)(alignment, size);
}

FRAMESTORM_INTERPOSE(int, posix_memalign, void** block, size_t alignment, size_t size) {
  FRAMESTORM_UNSAFE("posix_memalign");
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return EINVAL;
  }
  const AllocatorScope in_allocator;
  const int saved_errno = errno;
  void* allocated = real_allocator(&__interceptor_memalign, &__libc_memalign)(alignment, size);
  errno = saved_errno;  // posix_memalign does not set it
  if (allocated == nullptr) {
    return ENOMEM;
  }
  *block = allocated;
  return 0;
}

// --- locks and waits ---

#define FRAMESTORM_LOCK(name, parameters, arguments)               \
  FRAMESTORM_REAL(name, int parameters);                           \
  FRAMESTORM_INTERPOSE(int, name, FRAMESTORM_UNPAREN parameters) { \
    FRAMESTORM_UNSAFE(#name);                                      \
    const int error = real_##name.get() arguments;                 \
    if (error == 0 || error == EOWNERDEAD) {                       \
      count_lock(1);                                               \
    }                                                              \
    return error;                                                  \
  }
#define FRAMESTORM_UNLOCK(name, parameters, arguments)             \
  FRAMESTORM_REAL(name, int parameters);                           \
  FRAMESTORM_INTERPOSE(int, name, FRAMESTORM_UNPAREN parameters) { \
    FRAMESTORM_UNSAFE(#name);                                      \
    const int error = real_##name.get() arguments;                 \
    if (error == 0) {                                              \
      count_lock(-1);                                              \
    }                                                              \
    return error;                                                  \
  }
#define FRAMESTORM_WAIT(name, parameters, arguments)               \
  FRAMESTORM_REAL(name, int parameters);                           \
  FRAMESTORM_INTERPOSE(int, name, FRAMESTORM_UNPAREN parameters) { \
    FRAMESTORM_UNSAFE(#name);                                      \
    return real_##name.get() arguments;                            \
  }
#define FRAMESTORM_UNPAREN(...) __VA_ARGS__

FRAMESTORM_LOCK(pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
FRAMESTORM_LOCK(pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
FRAMESTORM_LOCK(pthread_mutex_timedlock, (pthread_mutex_t * mutex, const timespec* until),
                (mutex, until))
FRAMESTORM_UNLOCK(pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
FRAMESTORM_LOCK(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
FRAMESTORM_LOCK(pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock))
FRAMESTORM_LOCK(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
FRAMESTORM_LOCK(pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock))
FRAMESTORM_UNLOCK(pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
FRAMESTORM_WAIT(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
                (condition, mutex))
FRAMESTORM_WAIT(pthread_cond_timedwait,
                (pthread_cond_t * condition, pthread_mutex_t* mutex, const timespec* until),
                (condition, mutex, until))
FRAMESTORM_WAIT(sem_wait, (sem_t * semaphore), (semaphore))
FRAMESTORM_REAL(sem_timedwait, int(sem_t*, const timespec*));
FRAMESTORM_INTERPOSE(int, sem_timedwait, sem_t* semaphore, const timespec* until) {
  FRAMESTORM_UNSAFE("sem_timedwait");
  if (sampler::is_this_thread()) [[unlikely]] {
    return sampler::wait_held(semaphore, real_sem_timedwait.get());
  }
  return real_sem_timedwait.get()(semaphore, until);
}

// --- signal mask ---

#define FRAMESTORM_MASK(name)                                                       \
  FRAMESTORM_REAL(name, int(int, const sigset_t*, sigset_t*));                      \
  FRAMESTORM_INTERPOSE(int, name, int how, const sigset_t* set, sigset_t* before) { \
    if (set == nullptr || walk_state.recovery.sp == 0) [[likely]] {                 \
      return real_##name.get()(how, set, before);                                   \
    }                                                                               \
    sigset_t mask;                                                                  \
    const int error = real_##name.get()(how, set, &mask);                           \
    if (error == 0) {                                                               \
      note_mask_change(how, *set, mask);                                            \
      if (before != nullptr) {                                                      \
        *before = mask;                                                             \
      }                                                                             \
    }                                                                               \
    return error;                                                                   \
  }

FRAMESTORM_MASK(pthread_sigmask)
FRAMESTORM_MASK(sigprocmask)

// --- threads ---

FRAMESTORM_REAL(pthread_create, int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*));
FRAMESTORM_INTERPOSE(int, pthread_create, pthread_t* thread, const pthread_attr_t* attributes,
                     void* (*start_routine)(void*), void* arg) {
  FRAMESTORM_UNSAFE("pthread_create");
  if (threads_left_alone.load(std::memory_order_acquire)) {
    return real_pthread_create.get()(thread, attributes, start_routine, arg);
  }
  auto* boxed = static_cast<ThreadStart*>(std::malloc(sizeof(ThreadStart)));
  if (boxed == nullptr) {
    return EAGAIN;
  }
  pthread_attr_t fenced;
  FencedStack* const stack = fence_stack(attributes, &fenced);
  *boxed = {start_routine, arg, stack};
  const int error =
      real_pthread_create.get()(thread, stack == nullptr ? attributes : &fenced, run_thread, boxed);
  if (stack != nullptr) {
    pthread_attr_destroy(&fenced);
  }
  if (error != 0) {
    std::free(boxed);
    if (stack != nullptr) {
      give_back(stack);
    }
  }
  return error;
}

int create_unhooked_thread(pthread_t* thread, void* (*start_routine)(void*)) {
  return real_pthread_create.get()(thread, nullptr, start_routine, nullptr);
}

// The interposer's own address, whatever malloc the name is bound to here.
extern "C" [[gnu::visibility("hidden"), gnu::alias("malloc")]] void* framestorm_own_malloc(
    size_t size);

namespace interposer {

bool is_active() {
  return find_default("malloc") == reinterpret_cast<void*>(&framestorm_own_malloc);
}

}  // namespace interposer

// The dl* stubs ask here for the function to continue in.
extern "C" [[gnu::visibility("hidden")]] void* framestorm_dl_call(const char* name, void* frame,
                                                                  std::atomic<void*>* real) {
  if (in_walk(walk_state)) [[unlikely]] {
    record_unsafe_call(name, reinterpret_cast<uintptr_t>(frame));
  }
  void* function = real->load(std::memory_order_acquire);
  if (function == nullptr) [[unlikely]] {
    function =
        std::string_view(name) == "dlsym" ? reinterpret_cast<void*>(real_dlsym()) : find_real(name);
    real->store(function, std::memory_order_release);
  }
  return function;
}

// --- terminal calls: the end of the process, and what HotSpot's error reporting starts with ---

#define FRAMESTORM_NO_RETURN(name, parameters, arguments)           \
  FRAMESTORM_REAL(name, void parameters);                           \
  FRAMESTORM_INTERPOSE(void, name, FRAMESTORM_UNPAREN parameters) { \
    FRAMESTORM_TERMINAL(#name);                                     \
    real_##name.get() arguments;                                    \
    __builtin_unreachable();                                        \
  }
#define FRAMESTORM_STDIO_IN(scope, result, name, parameters, arguments) \
  FRAMESTORM_REAL(name, result parameters);                             \
  FRAMESTORM_INTERPOSE(result, name, FRAMESTORM_UNPAREN parameters) {   \
    FRAMESTORM_TERMINAL(#name);                                         \
    scope return real_##name.get() arguments;                           \
  }
#define FRAMESTORM_STDIO(result, name, parameters, arguments) \
  FRAMESTORM_STDIO_IN(, result, name, parameters, arguments)
// One that takes the lock of glibc's list of files, which the loop takes to open one: no thread is halted in it.
#define FRAMESTORM_STDIO_LIST(result, name, parameters, arguments) \
  FRAMESTORM_STDIO_IN(const AllocatorScope in_libc;, result, name, parameters, arguments)
// A variadic function forwards to the real one that takes a va_list (interposed elsewhere here).
#define FRAMESTORM_PRINTF(name, va_name, parameters, arguments)         \
  FRAMESTORM_INTERPOSE(int, name, FRAMESTORM_UNPAREN parameters, ...) { \
    FRAMESTORM_TERMINAL(#name);                                         \
    va_list values;                                                     \
    va_start(values, format);                                           \
    const int length = real_##va_name.get() arguments;                  \
    va_end(values);                                                     \
    return length;                                                      \
  }

FRAMESTORM_NO_RETURN(abort, (), ())
FRAMESTORM_NO_RETURN(exit, (int status), (status))
FRAMESTORM_NO_RETURN(_exit, (int status), (status))
FRAMESTORM_NO_RETURN(_Exit, (int status), (status))
FRAMESTORM_NO_RETURN(quick_exit, (int status), (status))
FRAMESTORM_NO_RETURN(__stack_chk_fail, (), ())
FRAMESTORM_NO_RETURN(__assert_fail,
                     (const char* assertion, const char* file, unsigned line, const char* function),
                     (assertion, file, line, function))

FRAMESTORM_STDIO(int, vsnprintf, (char* out, size_t size, const char* format, va_list values),
                 (out, size, format, values))
int format_past_interposer(char* out, size_t size, const char* format, va_list values) {
  return real_vsnprintf.get()(out, size, format, values);
}
FRAMESTORM_STDIO(int, vsprintf, (char* out, const char* format, va_list values),
                 (out, format, values))
FRAMESTORM_STDIO(int, vfprintf, (FILE * file, const char* format, va_list values),
                 (file, format, values))
FRAMESTORM_STDIO(int, vprintf, (const char* format, va_list values), (format, values))
FRAMESTORM_STDIO(int, vdprintf, (int fd, const char* format, va_list values), (fd, format, values))
FRAMESTORM_STDIO(int, __vsnprintf_chk,
                 (char* out, size_t size, int flag, size_t room, const char* format,
                  va_list values),
                 (out, size, flag, room, format, values))
FRAMESTORM_STDIO(int, __vsprintf_chk,
                 (char* out, int flag, size_t room, const char* format, va_list values),
                 (out, flag, room, format, values))
FRAMESTORM_STDIO(int, __vfprintf_chk, (FILE * file, int flag, const char* format, va_list values),
                 (file, flag, format, values))
FRAMESTORM_STDIO(int, __vprintf_chk, (int flag, const char* format, va_list values),
                 (flag, format, values))

FRAMESTORM_PRINTF(snprintf, vsnprintf, (char* out, size_t size, const char* format),
                  (out, size, format, values))
FRAMESTORM_PRINTF(sprintf, vsprintf, (char* out, const char* format), (out, format, values))
FRAMESTORM_PRINTF(fprintf, vfprintf, (FILE * file, const char* format), (file, format, values))
FRAMESTORM_PRINTF(printf, vprintf, (const char* format), (format, values))
FRAMESTORM_PRINTF(dprintf, vdprintf, (int fd, const char* format), (fd, format, values))
FRAMESTORM_PRINTF(__snprintf_chk, __vsnprintf_chk,
                  (char* out, size_t size, int flag, size_t room, const char* format),
                  (out, size, flag, room, format, values))
FRAMESTORM_PRINTF(__sprintf_chk, __vsprintf_chk,
                  (char* out, int flag, size_t room, const char* format),
                  (out, flag, room, format, values))
FRAMESTORM_PRINTF(__fprintf_chk, __vfprintf_chk, (FILE * file, int flag, const char* format),
                  (file, flag, format, values))
FRAMESTORM_PRINTF(__printf_chk, __vprintf_chk, (int flag, const char* format),
                  (flag, format, values))

FRAMESTORM_STDIO(size_t, fwrite, (const void* items, size_t size, size_t count, FILE* file),
                 (items, size, count, file))
FRAMESTORM_STDIO(size_t, fread, (void* items, size_t size, size_t count, FILE* file),
                 (items, size, count, file))
FRAMESTORM_STDIO(int, fputs, (const char* text, FILE* file), (text, file))
FRAMESTORM_STDIO(int, fputc, (int character, FILE* file), (character, file))
FRAMESTORM_STDIO(int, putc, (int character, FILE* file), (character, file))
FRAMESTORM_STDIO(int, putchar, (int character), (character))
FRAMESTORM_STDIO(int, puts, (const char* text), (text))
FRAMESTORM_STDIO(char*, fgets, (char* out, int size, FILE* file), (out, size, file))
FRAMESTORM_STDIO_LIST(FILE*, fopen, (const char* path, const char* mode), (path, mode))
FRAMESTORM_STDIO_LIST(FILE*, fopen64, (const char* path, const char* mode), (path, mode))
FRAMESTORM_STDIO_LIST(int, fclose, (FILE * file), (file))
FRAMESTORM_STDIO_LIST(int, fflush, (FILE * file), (file))

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace framestorm
