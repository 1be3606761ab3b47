#include "harness/guard/unsafe_calls.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "harness/guard/guard_fixture.h"

// The fortified forms, as a library built with _FORTIFY_SOURCE calls them.
extern "C" int __snprintf_chk(char* out, size_t size, int flag, size_t room, const char* format,
                              ...);

namespace framestorm {
namespace {

using guard_test::names_of;
using guard_test::stack_of;
using guard_test::Walk;
using guard_test::walk;

class InstalledGuard : public ::testing::Environment {
 public:
  void SetUp() override { Guard::install({}, guard_test::kTestLimits); }
};
[[maybe_unused]] const auto* const installed_guard =
    ::testing::AddGlobalTestEnvironment(new InstalledGuard);  // owned by GoogleTest

// What the tested calls work on; volatile pointers, so that the compiler keeps the calls.
void* volatile block;
char text[64];
FILE* null_file;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
sem_t semaphore;
constexpr timespec kPast{1, 0};

// Through a pointer: the compiler would turn it into snprintf.
int (*volatile fortified_snprintf)(char*, size_t, int, size_t, const char*, ...) = __snprintf_chk;

int print_to(char* out, size_t size, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(out, size, format, values);
  va_end(values);
  return length;
}

struct Call {
  const char* function;
  void (*prepare)();
  void (*call)();
};
std::ostream& operator<<(std::ostream& out, const Call& call) { return out << call.function; }
std::string name_of_call(const ::testing::TestParamInfo<Call>& info) { return info.param.function; }

FRAMESTORM_TEST_FRAME void unsafe_walker(void (*call)()) { call(); }
FRAMESTORM_TEST_FRAME void unsafe_walk(void* call) {
  unsafe_walker(reinterpret_cast<void (*)()>(call));
}
void allocate_block() { block = malloc(16); }
void lock_mutex() { pthread_mutex_lock(&mutex); }
void lock_rwlock() { pthread_rwlock_rdlock(&rwlock); }
void post_semaphore() { sem_post(&semaphore); }

constexpr Call kUnsafeCalls[] = {
    {"malloc", nullptr, [] { block = malloc(16); }},
    {"calloc", nullptr, [] { block = calloc(2, 8); }},
    {"realloc", allocate_block,
     [] {
       void* volatile larger = realloc(block, 64);
       block = larger;
     }},
    {"free", allocate_block, [] { free(block); }},
    {"aligned_alloc", nullptr, [] { block = aligned_alloc(64, 64); }},
    {"memalign", nullptr, [] { block = memalign(64, 64); }},
    {"posix_memalign", nullptr,
     [] {
       void* aligned = nullptr;
       (void)posix_memalign(&aligned, 64, 64);
       block = aligned;
     }},
    {"pthread_mutex_lock", nullptr, [] { pthread_mutex_lock(&mutex); }},
    {"pthread_mutex_trylock", nullptr, [] { (void)(pthread_mutex_trylock(&mutex) == 0); }},
    {"pthread_mutex_timedlock", nullptr, [] { pthread_mutex_timedlock(&mutex, &kPast); }},
    {"pthread_mutex_unlock", lock_mutex, [] { pthread_mutex_unlock(&mutex); }},
    {"pthread_rwlock_rdlock", nullptr, [] { pthread_rwlock_rdlock(&rwlock); }},
    {"pthread_rwlock_tryrdlock", nullptr, [] { pthread_rwlock_tryrdlock(&rwlock); }},
    {"pthread_rwlock_wrlock", nullptr, [] { pthread_rwlock_wrlock(&rwlock); }},
    {"pthread_rwlock_trywrlock", nullptr, [] { pthread_rwlock_trywrlock(&rwlock); }},
    {"pthread_rwlock_unlock", lock_rwlock, [] { pthread_rwlock_unlock(&rwlock); }},
    {"pthread_cond_timedwait", lock_mutex,
     [] { pthread_cond_timedwait(&condition, &mutex, &kPast); }},
    {"sem_wait", post_semaphore, [] { sem_wait(&semaphore); }},
    {"sem_timedwait", post_semaphore, [] { sem_timedwait(&semaphore, &kPast); }},
    {"dlopen", nullptr, [] { dlopen(nullptr, RTLD_NOW); }},
    {"dlsym", nullptr, [] { block = dlsym(RTLD_DEFAULT, "getpid"); }},
    {"dladdr", nullptr,
     [] {
       Dl_info info;
       dladdr(text, &info);
     }},
    {"dl_iterate_phdr", nullptr,
     [] { dl_iterate_phdr([](dl_phdr_info*, size_t, void*) { return 1; }, nullptr); }},
    {"pthread_create", nullptr,
     [] {
       pthread_t thread{};
       pthread_create(&thread, nullptr, [](void* arg) { return arg; }, nullptr);
       pthread_detach(thread);
     }},
};

class UnsafeCallTest : public ::testing::TestWithParam<Call> {
 protected:
  void SetUp() override {
    pthread_mutex_init(&mutex, nullptr);
    pthread_rwlock_init(&rwlock, nullptr);
    sem_init(&semaphore, 0, 0);
  }
};

TEST_P(UnsafeCallTest, IsRecordedWithTheWalkersStackAndStillWorks) {
  if (GetParam().prepare != nullptr) {
    GetParam().prepare();
  }
  const Walk result = walk(unsafe_walk, reinterpret_cast<void*>(GetParam().call));
  EXPECT_EQ(result.end, WalkEnd::returned) << "recorded, then forwarded";
  ASSERT_GE(result.unsafe.count, 1U);
  const UnsafeCall& call = result.unsafe.calls[0];
  EXPECT_STREQ(call.function, GetParam().function);
  const std::vector<std::string> names = names_of({call.stack, call.stack_size});
  EXPECT_THAT(names, ::testing::Contains("unsafe_walker"));
  EXPECT_EQ(names.back(), "unsafe_walk");
  const auto begin = reinterpret_cast<uintptr_t>(GetParam().call);
  EXPECT_TRUE(call.stack[0] > begin && call.stack[0] < begin + 512) << "stack[0] is the caller";
}

TEST_P(UnsafeCallTest, IsNotRecordedOutsideAWalk) {
  static UnsafeCalls calls;
  FaultRecord fault;
  Guard::call([](void*) {}, nullptr, &fault, &calls);
  if (GetParam().prepare != nullptr) {
    GetParam().prepare();
  }
  GetParam().call();
  EXPECT_EQ(calls.count, 0U);
}

INSTANTIATE_TEST_SUITE_P(Interposer, UnsafeCallTest, ::testing::ValuesIn(kUnsafeCalls),
                         name_of_call);

constexpr Call kTerminalCalls[] = {
    {"abort", nullptr, [] { abort(); }},
    {"exit", nullptr, [] { exit(3); }},
    {"_exit", nullptr, [] { _exit(3); }},
    {"_Exit", nullptr, [] { _Exit(3); }},
    {"quick_exit", nullptr, [] { quick_exit(3); }},
    {"__assert_fail", nullptr, [] { __assert_fail("x", "file", 1, "function"); }},
    {"vsnprintf", nullptr, [] { print_to(text, sizeof(text), "%d", 1); }},
    {"snprintf", nullptr, [] { snprintf(text, sizeof(text), "%d", getpid()); }},
    {"__snprintf_chk", nullptr, [] { fortified_snprintf(text, 9, 0, 9, "%d", getpid()); }},
    {"fprintf", nullptr, [] { fprintf(null_file, "%d", getpid()); }},
    {"printf", nullptr, [] { printf("%d", getpid()); }},
    {"dprintf", nullptr, [] { dprintf(-1, "%d", getpid()); }},
    {"fwrite", nullptr, [] { fwrite(text, 1, sizeof(text), null_file); }},
    {"fputs", nullptr, [] { fputs(text, null_file); }},
    {"fputc", nullptr, [] { fputc('x', null_file); }},
    {"puts", nullptr, [] { puts("never seen"); }},
    {"fopen", nullptr, [] { block = fopen("/dev/null", "r"); }},
    {"fflush", nullptr, [] { fflush(null_file); }},
};

class TerminalCallTest : public ::testing::TestWithParam<Call> {
 protected:
  void SetUp() override { null_file = fopen("/dev/null", "w"); }
  void TearDown() override { fclose(null_file); }
};

TEST_P(TerminalCallTest, EndsTheWalk) {
  const Walk result = walk(unsafe_walk, reinterpret_cast<void*>(GetParam().call));
  ASSERT_EQ(result.end, WalkEnd::terminal_call);
  EXPECT_EQ(result.fault.end, WalkEnd::terminal_call);
  ASSERT_NE(result.fault.function, nullptr);
  EXPECT_STREQ(result.fault.function, GetParam().function);
  EXPECT_EQ(result.fault.signo, 0);
  EXPECT_EQ(result.fault.stack[0], result.fault.pc);
  EXPECT_EQ(result.fault.registers[REG_RIP], static_cast<greg_t>(result.fault.pc));
  EXPECT_EQ(result.fault.code_size, kCodeBytes);
  const std::vector<std::string> names = stack_of(result.fault);
  EXPECT_THAT(names, ::testing::Contains("unsafe_walker"));
  EXPECT_EQ(names.back(), "unsafe_walk");
}

INSTANTIATE_TEST_SUITE_P(Interposer, TerminalCallTest, ::testing::ValuesIn(kTerminalCalls),
                         name_of_call);

TEST(UnsafeCallsTest, StdioWorksOutsideAWalk) {
  EXPECT_EQ(snprintf(text, sizeof(text), "%d-%s-%.1f", 7, "x", 1.5), 7);
  EXPECT_STREQ(text, "7-x-1.5");
  EXPECT_EQ(print_to(text, sizeof(text), "%ld", 12L), 2);
  EXPECT_STREQ(text, "12");
  EXPECT_EQ(fortified_snprintf(text, sizeof(text), 0, sizeof(text), "%d", 5), 1);
  EXPECT_STREQ(text, "5");
}

TEST(UnsafeCallsTest, PosixMemalignKeepsItsContract) {
  void* aligned = nullptr;
  EXPECT_EQ(posix_memalign(&aligned, 3, 8), EINVAL);
  errno = ERANGE;
  EXPECT_EQ(posix_memalign(&aligned, 64, SIZE_MAX / 2), ENOMEM);
  EXPECT_EQ(errno, ERANGE);
  ASSERT_EQ(posix_memalign(&aligned, 4096, 8), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 4096, 0U);
  free(aligned);
}

TEST(UnsafeCallsTest, EveryCallCountsTheFirstFewAreKept) {
  const Walk result = walk([] {
    block = nullptr;
    free(block);
    for (int i = 0; i < 9; ++i) {
      block = malloc(1);
    }
  });
  EXPECT_EQ(result.unsafe.count, 10U);
  EXPECT_STREQ(result.unsafe.calls[0].function, "free");
  EXPECT_STREQ(result.unsafe.calls[kMaxUnsafeCalls - 1].function, "malloc");
}

TEST(UnsafeCallsTest, SafeCallsAreNotRecorded) {
  const Walk result = walk([] {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    block = pthread_getspecific(0);
    sem_post(&semaphore);
    if (write(-1, text, 1) > 0) {
      abort();
    }
  });
  EXPECT_EQ(result.end, WalkEnd::returned);
  EXPECT_EQ(result.unsafe.count, 0U);
}

TEST(UnsafeCallsTest, UnsafeCallsBeforeAFaultAreKept) {
  const Walk result = walk([] {
    block = malloc(1);
    __builtin_trap();
  });
  EXPECT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.unsafe.count, 1U);
}

TEST(UnsafeCallsTest, BrokenHeapFoundByFreeEndsTheWalk) {
  static char not_a_block[256];
  const auto free_garbage = [] {
    block = not_a_block + 8;
    free(block);
  };
  const Walk result =
      walk(unsafe_walk, reinterpret_cast<void*>(static_cast<void (*)()>(free_garbage)));
  ASSERT_NE(result.end, WalkEnd::returned);
  EXPECT_EQ(stack_of(result.fault).back(), "unsafe_walk") << "libc's own frames hide no caller";
  EXPECT_EQ(result.fault.locks_held, 1U) << "the allocator was abandoned";
  EXPECT_FALSE(interposer::in_allocator());
}

TEST(UnsafeCallsTest, LocksHeldByAnAbandonedWalkAreCounted) {
  pthread_mutex_init(&mutex, nullptr);
  pthread_rwlock_init(&rwlock, nullptr);
  Walk result = walk([] {
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    if (pthread_mutex_trylock(&mutex) != 0) {
      abort();
    }
  });
  EXPECT_EQ(result.fault.locks_held, 2U);
  pthread_rwlock_unlock(&rwlock);
  pthread_mutex_unlock(&mutex);
  result = walk([] {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    abort();
  });
  EXPECT_EQ(result.fault.locks_held, 0U);
}

TEST(UnsafeCallsTest, OnlyASignalMaskThatIsLeftIsNoted) {
  static int (*change)(int, const sigset_t*, sigset_t*);
  static sigset_t one;
  static sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  for (const auto by : {&pthread_sigmask, &sigprocmask}) {
    change = by;
    Walk result = walk([] {
      change(SIG_BLOCK, &one, &before);
      change(SIG_SETMASK, &before, nullptr);
    });
    EXPECT_EQ(result.unsafe.count, 0U) << "they are async-signal-safe";
    EXPECT_FALSE(result.unsafe.mask_changed);
    result = walk([] {
      change(SIG_BLOCK, &one, nullptr);
      change(SIG_UNBLOCK, &one, nullptr);
    });
    EXPECT_FALSE(result.unsafe.mask_changed);
    result = walk([] {
      change(SIG_BLOCK, &one, nullptr);
      sigset_t other = one;
      sigaddset(&other, SIGUSR1);
      change(SIG_UNBLOCK, &other, nullptr);
      change(SIG_BLOCK, &one, nullptr);
    });
    EXPECT_TRUE(result.unsafe.mask_changed);
    sigset_t now;
    change(SIG_BLOCK, nullptr, &now);
    EXPECT_EQ(sigismember(&now, SIGUSR2), 0) << "the guard puts it back";
  }
}

TEST(UnsafeCallsTest, LoadedLibrariesBindToTheInterposer) {
  void* library = dlopen(UNSAFE_CALLS_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  static char* (*duplicate)(const char*);
  duplicate = reinterpret_cast<char* (*)(const char*)>(dlsym(library, "plugin_duplicate"));
  ASSERT_NE(duplicate, nullptr);
  const Walk result = walk([] { block = duplicate("text"); });
  EXPECT_EQ(result.unsafe.count, 1U);
  EXPECT_STREQ(result.unsafe.calls[0].function, "malloc");
  EXPECT_EQ(names_of({result.unsafe.calls[0].stack, 1}).front(), "plugin_duplicate");
  free(block);
  dlclose(library);
}

TEST(UnsafeCallsTest, DlsymKeepsItsCallersPosition) {
  void* own = dlsym(RTLD_DEFAULT, "malloc");
  void* next = dlsym(RTLD_NEXT, "malloc");
  EXPECT_EQ(own, reinterpret_cast<void*>(&malloc));
  ASSERT_NE(next, nullptr);
  EXPECT_NE(next, own);
}

TEST(UnsafeCallsTest, ConditionVariablesWorkThroughTheInterposer) {
  static std::atomic<bool> ready;
  ready = false;
  pthread_mutex_init(&mutex, nullptr);
  std::thread waiter([] {
    pthread_mutex_lock(&mutex);
    while (!ready) {
      pthread_cond_wait(&condition, &mutex);
    }
    pthread_mutex_unlock(&mutex);
  });
  pthread_mutex_lock(&mutex);
  ready = true;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  waiter.join();
  EXPECT_TRUE(ready);
}

std::atomic<int> actions_in_handler;
std::atomic<int> actions_deferred;
std::atomic<int> actions_in_allocator;

// Allocates, as a halted thread's fuzz loop does: in the allocator it would deadlock or break the
// heap.
void act() {
  actions_in_allocator += interposer::in_allocator() ? 1 : 0;
  std::unique_ptr<int[]> memory(new int[64]);
  memory[0] = 1;
  block = memory.get();
}

TEST(UnsafeCallsTest, HaltsInTheAllocatorAreDeferredToItsExit) {
  struct sigaction action{};
  action.sa_handler = [](int) {
    if (interposer::in_allocator()) {
      interposer::on_allocator_exit([] {
        ++actions_deferred;
        act();
      });
    } else {
      ++actions_in_handler;
      act();
    }
  };
  sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> done{false};
  std::thread victim([&] {
    while (!done) {
      for (size_t size = 8; size < 4096; size *= 2) {
        void* volatile memory = malloc(size);
        void* volatile larger = realloc(memory, 3 * size);
        free(larger);
        for (volatile int outside = 0; outside < 100; outside = outside + 1) {
        }
      }
    }
  });
  const auto enough = [] { return actions_deferred > 100 && actions_in_handler > 100; };
  for (int sent = 0; !enough() && sent < 2'000'000; ++sent) {
    pthread_kill(victim.native_handle(), SIGUSR1);
  }
  done = true;
  victim.join();
  EXPECT_TRUE(enough()) << actions_deferred << " deferred, " << actions_in_handler << " at once";
  EXPECT_EQ(actions_in_allocator, 0);
}

TEST(UnsafeCallsTest, ExitActionKeepsErrno) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  interposer::on_allocator_exit([] { errno = EBADF; });
  errno = ERANGE;
  block = malloc(1);
  EXPECT_EQ(errno, ERANGE);
}

void* (*hooked_routine)(void*);
std::atomic<void*> hooked_arg;
std::atomic<bool> routine_ran_before_hook;
std::atomic<bool> routine_ran;

void* test_routine(void* arg) {
  routine_ran = true;
  return arg;
}

TEST(UnsafeCallsTest, ThreadStartHookRunsFirstOnTheNewThread) {
  interposer::set_thread_start_hook([](void* (*routine)(void*), void* arg) {
    routine_ran_before_hook = routine_ran.load();
    hooked_routine = routine;
    hooked_arg = arg;
  });
  int value = 0;
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, test_routine, &value), 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, &value);
  EXPECT_EQ(hooked_routine, test_routine);
  EXPECT_EQ(hooked_arg, &value);
  EXPECT_TRUE(routine_ran);
  EXPECT_FALSE(routine_ran_before_hook);
  interposer::set_thread_start_hook(nullptr);
  hooked_arg = nullptr;
  std::thread([] {}).join();
  EXPECT_EQ(hooked_arg, nullptr);
}

}  // namespace
}  // namespace framestorm
