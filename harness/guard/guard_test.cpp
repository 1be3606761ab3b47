#include "harness/guard/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "harness/guard/guard_fixture.h"

namespace framestorm {
namespace {

using guard_test::GuardTest;
using guard_test::stack_of;
using guard_test::Walk;
using guard_test::walk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;

constexpr size_t kPage = 4096;
constexpr uintptr_t kUnmapped = 0x10;
constexpr uint64_t kMarker = 0x1122334455667788;

// Owner of SIGSEGV before the guard: opens the page that a test asked for, dies for all else.
std::atomic<void*> page_to_open{nullptr};
std::atomic<int> forwarded{0};
siginfo_t forwarded_info;
sigset_t forwarded_mask;
clock_t forwarded_clocks = 0;  // how long it takes, of processor time

void previous_owner(int signo, siginfo_t* info, void*) {
  ++forwarded;
  for (const clock_t begin = clock(); clock() - begin < forwarded_clocks;) {
  }
  forwarded_info = *info;
  pthread_sigmask(SIG_SETMASK, nullptr, &forwarded_mask);
  void* page = page_to_open.exchange(nullptr);
  if (page == nullptr) {
    signal(signo, SIG_DFL);
    return;
  }
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}

class InstalledGuard : public ::testing::Environment {
 public:
  void SetUp() override {
    struct sigaction action{};
    action.sa_sigaction = previous_owner;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    ASSERT_EQ(sigaction(SIGSEGV, &action, nullptr), 0);
    Guard::install({.claim = guard_test::dispatch_claim}, guard_test::kTestLimits);
  }
};
[[maybe_unused]] const auto* const kInstalledGuard =
    ::testing::AddGlobalTestEnvironment(new InstalledGuard);  // owned by GoogleTest

FRAMESTORM_TEST_FRAME void read_address(uintptr_t address) {
  asm volatile("movq %1, %%r12\n movq (%0), %%rax" ::"r"(address), "r"(kMarker) : "rax", "r12");
}
FRAMESTORM_TEST_FRAME void walker_inner() { read_address(kUnmapped); }
FRAMESTORM_TEST_FRAME void walker_outer() { walker_inner(); }
FRAMESTORM_TEST_FRAME void illegal_instruction() { asm volatile("ud2"); }
FRAMESTORM_TEST_FRAME void divide_by_zero() {
  asm volatile("xorl %%edx, %%edx\n xorl %%ecx, %%ecx\n movl $1, %%eax\n idivl %%ecx" ::
                   : "eax", "ecx", "edx");
}
FRAMESTORM_TEST_FRAME void jump_to(void* target) {
  asm volatile("callq *%0" ::"r"(target) : "memory");
}
FRAMESTORM_TEST_FRAME void jumper(void* target) { jump_to(target); }

void* mapping(int protection) {
  void* page = mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(page, MAP_FAILED);
  return page;
}

TEST_F(GuardTest, ReturningWalkIsNotAFault) {
  bool ran = false;
  const Walk result = walk([](void* flag) { *static_cast<bool*>(flag) = true; }, &ran);
  EXPECT_EQ(result.end, WalkEnd::returned);
  EXPECT_TRUE(ran);
  EXPECT_EQ(result.unsafe.count, 0U);
}

TEST_F(GuardTest, SegvIsRecordedWithAllThatExplainsIt) {
  const Walk result = walk(walker_outer);
  ASSERT_EQ(result.end, WalkEnd::fault);
  const FaultRecord& fault = result.fault;
  EXPECT_EQ(fault.end, WalkEnd::fault);
  EXPECT_EQ(fault.signo, SIGSEGV);
  EXPECT_EQ(fault.si_code, SEGV_MAPERR);
  EXPECT_EQ(fault.address, kUnmapped);
  EXPECT_EQ(fault.registers[REG_R12], static_cast<greg_t>(kMarker));
  EXPECT_EQ(fault.registers[REG_RIP], static_cast<greg_t>(fault.pc));
  EXPECT_EQ(fault.registers[REG_RSP], static_cast<greg_t>(fault.sp));
  EXPECT_EQ(fault.registers[REG_RBP], static_cast<greg_t>(fault.fp));
  EXPECT_EQ(fault.stack[0], fault.pc);
  EXPECT_THAT(stack_of(fault),
              ElementsAre("read_address", "walker_inner", "walker_outer", HasSubstr("run_plain")));
  ASSERT_EQ(fault.code_size, kCodeBytes);
  EXPECT_EQ(std::memcmp(fault.code, std::bit_cast<void*>(fault.pc - kCodeBytesBefore), kCodeBytes),
            0);
  EXPECT_EQ(fault.function, nullptr);
  EXPECT_EQ(fault.locks_held, 0U);
}

TEST_F(GuardTest, SigbusIsContained) {
  const int fd = memfd_create("empty", 0);
  ASSERT_GE(fd, 0);
  void* page = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(page, MAP_FAILED);
  const Walk result =
      walk([](void* address) { read_address(reinterpret_cast<uintptr_t>(address)); }, page);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.signo, SIGBUS);
  EXPECT_EQ(result.fault.si_code, BUS_ADRERR);
  EXPECT_EQ(result.fault.address, reinterpret_cast<uintptr_t>(page));
  EXPECT_EQ(stack_of(result.fault).front(), "read_address");
  munmap(page, kPage);
  close(fd);
}

TEST_F(GuardTest, SigillAndSigfpeAreContained) {
  Walk result = walk(illegal_instruction);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.signo, SIGILL);
  EXPECT_EQ(stack_of(result.fault).front(), "illegal_instruction");
  result = walk(divide_by_zero);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.signo, SIGFPE);
  EXPECT_EQ(result.fault.si_code, FPE_INTDIV);
  EXPECT_EQ(stack_of(result.fault).front(), "divide_by_zero");
}

TEST_F(GuardTest, JumpToGarbageNamesTheCaller) {
  void* not_executable = mapping(PROT_READ);
  for (void* target : {static_cast<void*>(nullptr), not_executable}) {
    const Walk result = walk(jumper, target);
    ASSERT_EQ(result.end, WalkEnd::fault);
    EXPECT_EQ(result.fault.pc, reinterpret_cast<uintptr_t>(target));
    const std::vector<std::string> names = stack_of(result.fault);
    ASSERT_GE(names.size(), 3U);
    EXPECT_EQ(names[1], "jump_to");
    EXPECT_EQ(names[2], "jumper");
    EXPECT_EQ(result.fault.code_size, target == nullptr ? 0U : kCodeBytes);
  }
  munmap(not_executable, kPage);
}

TEST_F(GuardTest, CodeBeforeAMappingReadsAsZero) {
  auto* pages = static_cast<uint8_t*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  uint8_t* code = pages + kPage;
  code[0] = 0x0f;
  code[1] = 0x0b;  // ud2
  mprotect(code, kPage, PROT_READ | PROT_EXEC);
  mprotect(pages, kPage, PROT_NONE);
  const Walk result = walk(jump_to, code);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.signo, SIGILL);
  EXPECT_EQ(result.fault.code_size, kCodeBytes);
  EXPECT_EQ(result.fault.code[kCodeBytesBefore - 1], 0);
  EXPECT_EQ(result.fault.code[kCodeBytesBefore], 0x0f);
  EXPECT_EQ(result.fault.code[kCodeBytesBefore + 1], 0x0b);
  munmap(pages, 3 * kPage);
}

FRAMESTORM_TEST_FRAME uint64_t recurse(uint64_t depth) {
  volatile uint64_t frame[64] = {};
  frame[depth % std::size(frame)] = depth;
  return depth == UINT64_MAX ? 0 : recurse(depth + 1) + frame[0];
}

TEST_F(GuardTest, StackOverflowInAWalkIsContained) {
  Walk result;
  bool attached = false;
  bool usable_again = false;
  std::thread([&] {
    attached = Guard::attach_thread() && Guard::attach_thread();
    result = walk([] { recurse(0); });
    usable_again = walk([] { recurse(0); }).end == WalkEnd::fault;
    Guard::detach_thread();
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    attached = attached && (stack.ss_flags & SS_DISABLE) != 0;
  }).join();
  EXPECT_TRUE(attached);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.signo, SIGSEGV);
  EXPECT_EQ(result.fault.stack_size, kMaxStack);
  EXPECT_EQ(stack_of(result.fault).back(), "recurse");
  EXPECT_TRUE(usable_again);
}

TEST_F(GuardTest, AttachHasALimitAndEntriesOfDeadThreadsAreReused) {
  for (size_t i = 0; i < 2 * Guard::kMaxAttached; ++i) {  // never detached
    bool attached = false;
    std::thread([&] { attached = Guard::attach_thread(); }).join();
    ASSERT_TRUE(attached) << i;
  }
  std::atomic<size_t> tried{0};
  std::atomic<size_t> attached{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i <= Guard::kMaxAttached; ++i) {
    threads.emplace_back([&] {
      attached += Guard::attach_thread() ? 1 : 0;
      ++tried;
      while (tried <= Guard::kMaxAttached) {
        std::this_thread::yield();
      }
      Guard::detach_thread();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(attached, Guard::kMaxAttached);
}

Walk walk_in_handler;

TEST_F(GuardTest, FaultInTheWalkOfASignalHandlerIsContained) {
  struct sigaction action{};
  action.sa_handler = [](int) { walk_in_handler = walk(walker_outer); };
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 3; ++i) {  // a mask or signal stack left behind would stop the second
    walk_in_handler.end = WalkEnd::returned;
    raise(SIGUSR1);
    EXPECT_EQ(walk_in_handler.end, WalkEnd::fault);
    EXPECT_EQ(stack_of(walk_in_handler.fault).front(), "read_address");
  }
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR1), 0);
  EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
}

TEST_F(GuardTest, FaultOutsideAWalkReachesThePreviousOwnerAsTheKernelWouldCallIt) {
  void* page = mapping(PROT_NONE);
  page_to_open = page;
  const int before = forwarded;
  *static_cast<volatile int*>(page) = 7;
  EXPECT_EQ(forwarded, before + 1);
  EXPECT_EQ(forwarded_info.si_addr, page);
  EXPECT_EQ(forwarded_info.si_code, SEGV_ACCERR);
  EXPECT_EQ(sigismember(&forwarded_mask, SIGSEGV), 1);
  EXPECT_EQ(sigismember(&forwarded_mask, SIGUSR2), 1);
  EXPECT_EQ(sigismember(&forwarded_mask, SIGUSR1), 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR2), 0);
  EXPECT_EQ(walk(walker_outer).end, WalkEnd::fault);
  EXPECT_EQ(forwarded, before + 1) << "a fault inside a walk is not the previous owner's";
  munmap(page, kPage);
}

TEST_F(GuardTest, TimeInThePreviousOwnerIsCounted) {
  void* page = mapping(PROT_NONE);
  page_to_open = page;
  forwarded_clocks = CLOCKS_PER_SEC / 100;
  const uint64_t before = Guard::forwarded_ns();
  *static_cast<volatile int*>(page) = 7;
  forwarded_clocks = 0;
  const uint64_t after = Guard::forwarded_ns();
  // clock() is the process's, and others of its threads run.
  EXPECT_GE(after - before, 1'000'000U);
  EXPECT_EQ(walk(walker_outer).end, WalkEnd::fault);
  EXPECT_EQ(Guard::forwarded_ns(), after) << "a walk's fault is not passed on";
  munmap(page, kPage);
}

TEST_F(GuardTest, FaultsOutsideAWalkKillAsBefore) {
  EXPECT_EXIT(walker_outer(), KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(illegal_instruction(), KilledBySignal(SIGILL), "");
  EXPECT_EXIT(divide_by_zero(), KilledBySignal(SIGFPE), "");
  EXPECT_EXIT(kill(getpid(), SIGBUS), KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(abort(), KilledBySignal(SIGABRT), "");
}

TEST_F(GuardTest, SignalsSentFromOutsideAreNotTheWalksFault) {
  EXPECT_EXIT(walk([] { kill(getpid(), SIGBUS); }), KilledBySignal(SIGBUS), "");
}

TEST_F(GuardTest, ErrnoMaskAndFloatControlSurviveContainment) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  errno = ERANGE;
  const Walk result = walk([] {
    errno = EBADF;
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    fesetround(FE_UPWARD);
    for (int i = 0; i < 8; ++i) {
      asm volatile("fld1");
    }
    asm volatile("std");
    read_address(kUnmapped);
  });
  EXPECT_EQ(errno, ERANGE);
  ASSERT_EQ(result.end, WalkEnd::fault);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(std::memcmp(&before, &after, sizeof(sigset_t) / 16), 0);
  EXPECT_EQ(fegetround(), FE_TONEAREST);
  volatile long double one = 1.0L;  // a full x87 stack would make this not a number
  EXPECT_EQ(one + one, 2.0L);
}

TEST_F(GuardTest, MaskChangedByAReturningWalkIsRestored) {
  const Walk result = walk([] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, nullptr);
  });
  EXPECT_EQ(result.end, WalkEnd::returned);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGUSR2), 0);
}

TEST_F(GuardTest, NestedCallEndsTheOuterWalk) {
  const Walk result = walk([] { walk(walker_outer); });
  ASSERT_EQ(result.end, WalkEnd::terminal_call);
  EXPECT_STREQ(result.fault.function, "abort");
  EXPECT_EQ(walk(walker_outer).end, WalkEnd::fault);
}

TEST_F(GuardTest, ExceptionDoesNotLeaveAWalk) {
  const Walk result = walk([] { throw std::runtime_error("out of a walk"); });
  // std::terminate: the message of its handler, or abort.
  EXPECT_EQ(result.end, WalkEnd::terminal_call);
}

// Signals by the kernel: another thread may not get the time to send them, and the walk would be a
// hang. As many as are asked for, one after the other: where a timer's period is shorter than the
// machine takes to deliver a signal, nothing but handlers would run.
class SignalsToOneself {
 public:
  SignalsToOneself() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    EXPECT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    struct sigaction action{};
    action.sa_handler = [](int) {
      ++came;
      if (--left > 0) send_next();
    };
    EXPECT_EQ(sigaction(SIGPROF, &action, nullptr), 0);
  }
  ~SignalsToOneself() { timer_delete(timer); }

  static void begin(int count, long delay_ns) {
    came = 0;
    left = count;
    next_after_ns = delay_ns;
    send_next();
  }
  static int received() { return came; }

 private:
  static void send_next() {
    const itimerspec once{{0, 0}, {0, next_after_ns}};
    timer_settime(timer, 0, &once, nullptr);
  }
  static inline timer_t timer{};
  static inline std::atomic<int> came{0}, left{0};
  static inline long next_after_ns = 0;
};

TEST_F(GuardTest, OtherSignalsDuringAWalkAreHarmless) {
  constexpr int kSignals = 4;
  const SignalsToOneself signals;
  for (int i = 0; i < 400; ++i) {
    // Half of them while the walk runs; when the others come, differs from walk to walk.
    SignalsToOneself::begin(kSignals, 1 + i * 100);
    const Walk result = walk([] {
      while (SignalsToOneself::received() < kSignals / 2) {
      }
      read_address(kUnmapped);
    });
    EXPECT_EQ(result.end, WalkEnd::fault);
    while (SignalsToOneself::received() < kSignals) {
    }
  }
}

size_t open_files() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) {
    ++count;
  }
  closedir(folder);
  return count;
}

// The program's own memory. Not of statm, which is wrong by some pages for each core.
size_t anonymous_kb() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    if (size_t kb = 0; word == "Anonymous:" && rollup >> kb) return kb;
  }
  return 0;
}

TEST_F(GuardTest, AMillionContainedFaultsLeaveTheProcessHealthy) {
  ASSERT_TRUE(Guard::attach_thread());
  Walk result = walk(walker_outer);
  const size_t files = open_files();
  const size_t own = anonymous_kb();
  ASSERT_GT(own, 0U);
  for (int i = 0; i < 1'000'000; ++i) {
    result.end = Guard::call(guard_test::run_plain, reinterpret_cast<void*>(walker_outer),
                             &result.fault, &result.unsafe);
    ASSERT_EQ(result.end, WalkEnd::fault);
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_LT(anonymous_kb(), own + 1024);
  EXPECT_EQ(result.unsafe.count, 0U);
  Guard::detach_thread();
}

TEST_F(GuardTest, TwoThreadsTakeTurns) {
  std::array<sem_t, 2> turn;
  sem_init(&turn[0], 0, 1);
  sem_init(&turn[1], 0, 0);
  std::atomic<int> faults{0};
  auto loop = [&](size_t own) {
    for (int i = 0; i < 1000; ++i) {
      sem_wait(&turn[own]);
      faults += walk(walker_outer).end == WalkEnd::fault ? 1 : 0;
      sem_post(&turn[1 - own]);
    }
  };
  std::thread first(loop, 0);
  std::thread second(loop, 1);
  first.join();
  second.join();
  EXPECT_EQ(faults, 2000);
}

// The fuzz loop's way: one loop on its own stack that different threads continue between walks.
ucontext_t loop_context;
ucontext_t* host_context;
std::atomic<int> faults_of_loop;
std::atomic<int> tid_of_walk;

void migrating_loop() {
  for (;;) {
    const Walk result = walk([] {
      tid_of_walk = static_cast<int>(syscall(SYS_gettid));
      read_address(kUnmapped);
    });
    faults_of_loop += result.end == WalkEnd::fault ? 1 : 0;
    swapcontext(&loop_context, host_context);
  }
}

TEST_F(GuardTest, LoopThatMigratesBetweenThreads) {
  static std::array<std::byte, size_t{256} * 1024> stack;
  getcontext(&loop_context);
  loop_context.uc_stack.ss_sp = stack.data();
  loop_context.uc_stack.ss_size = stack.size();
  makecontext(&loop_context, migrating_loop, 0);
  faults_of_loop = 0;
  std::array<sem_t, 2> turn;
  sem_init(&turn[0], 0, 1);
  sem_init(&turn[1], 0, 0);
  auto host = [&](size_t own) {
    for (int i = 0; i < 100; ++i) {
      sem_wait(&turn[own]);
      ucontext_t here;
      host_context = &here;
      swapcontext(&here, &loop_context);
      EXPECT_EQ(tid_of_walk, static_cast<int>(syscall(SYS_gettid)));
      sem_post(&turn[1 - own]);
    }
  };
  std::thread first(host, 0);
  std::thread second(host, 1);
  first.join();
  second.join();
  EXPECT_EQ(faults_of_loop, 200);
}

TEST_F(GuardTest, InstallsOnce) { EXPECT_THROW(Guard::install({}, {}), std::system_error); }

TEST_F(GuardTest, CostOfAnEmptyWalk) {
  constexpr int kWalks = 5'000'000;
  Walk result;
  const auto start = std::chrono::steady_clock::now();
  int returned = 0;
  for (int i = 0; i < kWalks; ++i) {
    returned +=
        Guard::call([](void*) {}, nullptr, &result.fault, &result.unsafe) == WalkEnd::returned;
  }
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  printf("[ figure   ] %.1f ns per Guard::call of an empty function\n", taken.count() / kWalks);
  EXPECT_EQ(returned, kWalks);
}

}  // namespace
}  // namespace framestorm
