// What faults inside a walk: contained and counted, whatever becomes of the walk.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "harness/guard/signal_table.h"
#include "harness/hotspot/walkers_test/asgst_fixture.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using asgst_test::AsgstTest;
using asgst_test::kEveryKind;
using asgst_test::Traced;

TEST_F(AsgstTest, AFaultOfTheWalkIsContainedAndCounted) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  // The one thing a walk has to trust is where to write.
  void* const unwritable = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unwritable, MAP_FAILED);
  const jlong before = contained();
  const Traced traced = AsgstTest::traced(kEveryKind, 0, 16, [&](ASGST_CallTrace* trace) {
    trace->frames = static_cast<ASGST_CallFrame*>(unwritable);
    function<Function>("AsyncGetStackTrace")(trace, 16, victim(ScenarioId::parked).slot->context,
                                             0);
  });
  EXPECT_EQ(traced.trace.num_frames, ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before + 1);
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0) << "and the next walk is as ever";
  munmap(unwritable, 4096);
}

// Memory that cannot be read for a while: as if it had been freed, and given back.
class Unreadable {
 public:
  Unreadable(void* address, size_t size) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(address) / page * page;
    begin_ = reinterpret_cast<void*>(begin);
    size_ = reinterpret_cast<uintptr_t>(address) + size - begin;
    mprotect(begin_, size_, PROT_NONE);
  }
  ~Unreadable() { mprotect(begin_, size_, PROT_READ | PROT_WRITE); }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

 private:
  void* begin_;
  size_t size_;
};

// A stub asks the thread where it polled or threw: there may be none.
TEST_F(AsgstTest, AStubOnNoThreadsStackIsWalkedWithoutAFault) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto codes = session().jvm().code_map().entries();
  const auto compiled = std::ranges::find_if(codes, [](const CodeEntry& code) {
    return code.kind == CodeKind::nmethod && code.frame_bytes > 0;
  });
  ASSERT_NE(compiled, codes.end());
  // No return address.
  std::vector<uintptr_t> stack(4096, (*compiled).begin + 1);
  const uintptr_t sp = reinterpret_cast<uintptr_t>(stack.data());
  const jlong before = contained();
  int walked = 0;
  for (const CodeEntry& stub : codes) {
    if (stub.name != "SafepointBlob") continue;
    for (uintptr_t pc = stub.begin; pc < stub.end; ++pc) {
      ucontext_t context;
      copy_context(*victim(ScenarioId::c1).slot->context, &context);
      set_register(&context, Register::pc, pc);
      set_register(&context, Register::sp, sp);
      set_register(&context, Register::fp, sp + 2 * sizeof(sp));
      const Traced traced = walk_context(&context, ASGST_INCLUDE_NON_JAVA_THREADS);
      EXPECT_EQ(traced.trace.kind, ASGST_CPP_TRACE);
      EXPECT_NE(traced.trace.num_frames, ASGST_CONTAINED_FAULT) << "+" << pc - stub.begin;
      ++walked;
    }
  }
  EXPECT_GT(walked, 0);
  EXPECT_EQ(contained(), before);
}

// The thread whose stack sp is on may have ended meanwhile.
TEST_F(AsgstTest, AThreadThatIsGoneIsAContainedFault) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  const auto by_context = function<Function>("AsyncGetStackTrace");
  const auto by_frame = function<int (*)(void*, void*, void*, int, void (*)(void*, void*), void*)>(
      "ASGST_RunWithIteratorFromFrame");
  const Victim& gone = victim(ScenarioId::parked);
  ucontext_t* const context = gone.slot->context;
  const auto at = [&](Register reg) {
    return reinterpret_cast<void*>(get_register(*context, reg));
  };
  std::array<ASGST_CallFrame, 16> frames;
  ASGST_CallTrace trace = {};
  trace.frames = frames.data();
  const jlong before = contained();
  int from_frame = 0;
  {
    const Unreadable thread(gone.java_thread, gone.thread_copy.size());
    by_context(&trace, 16, context, 0);
    from_frame = by_frame(
        at(Register::sp), at(Register::fp), at(Register::pc), 0, [](void*, void*) {}, nullptr);
  }
  EXPECT_EQ(trace.num_frames, ASGST_CONTAINED_FAULT);
  EXPECT_EQ(from_frame, -23) << "ASGST_CONTAINED_FAULT of profile2.h";
  EXPECT_EQ(contained(), before + 2);
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0);
}

// Leaves what faults by longjmp, before or instead of the VM.
class FaultsThatLeave {
 public:
  using Handle = std::function<bool(int, siginfo_t*, void*)>;
  // `first`: asked before it leaves, may be null.
  explicit FaultsThatLeave(Handle first = nullptr) {
    first_ = std::move(first);
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      if (first_ != nullptr && first_(signal, info, context)) return;
      siglongjmp(out_.buffer, 1);
    };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~FaultsThatLeave() { sigaction(SIGSEGV, &before_, nullptr); }
  FaultsThatLeave(const FaultsThatLeave&) = delete;
  FaultsThatLeave& operator=(const FaultsThatLeave&) = delete;

  // Whether the body was left. It must have nothing to destroy.
  template <typename Body>
  bool leaves(Body body) const {
    const Out outer = out_;
    const bool left = sigsetjmp(out_.buffer, 1) != 0;
    if (!left) body();
    out_ = outer;
    return left;
  }

 private:
  struct Out {
    sigjmp_buf buffer;
  };
  static inline Out out_;
  static inline Handle first_;
  struct sigaction before_ = {};
};

class ProtectionTest : public AsgstTest {
 protected:
  void SetUp() override {
    start({ScenarioId::parked});
    halt(ScenarioId::parked);
    ASSERT_FALSE(HasFatalFailure());
    walker_ = function<Function>("AsyncGetStackTrace");
    unwritable_ = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(unwritable_, MAP_FAILED);
  }
  // Faults in a protected call.
  jint faulting_walk() {
    ASGST_CallTrace trace = {};
    trace.frames = static_cast<ASGST_CallFrame*>(unwritable_);
    walker_(&trace, 16, victim(ScenarioId::parked).slot->context, 0);
    return trace.num_frames;
  }
  bool leave_a_walk() {
    const FaultsThatLeave handler;
    return handler.leaves([this] { faulting_walk(); });
  }

  FaultsThatLeave::Handle vms() {
    return [this](int signal, siginfo_t* info, void* context) {
      return session().jvm().handle_fault(signal, info, context);
    };
  }

  Function walker_ = nullptr;
  void* unwritable_ = nullptr;
};

// As a profiler does that recovers from faults itself.
TEST_F(ProtectionTest, WalksThatWereLeftTakeNobodysProtectionAway) {
  constexpr int kMoreThanThereIsRoomFor = 200;
  for (int i = 0; i < kMoreThanThereIsRoomFor; ++i) ASSERT_TRUE(leave_a_walk());
  const jlong before = contained();
  EXPECT_EQ(faulting_walk(), ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before + 1);
}

// Where the frames of a walk that was left have been.
[[gnu::noinline]] void fault_over_old_frames() {
  std::array<volatile char, 65536> over;
  for (volatile char& each : over) each = 0;
  *reinterpret_cast<volatile int*>(uintptr_t{16}) = over[0];
}

TEST_F(ProtectionTest, AWalkThatWasLeftIsNotGoneOnWithAtALaterFault) {
  const jlong before = contained();
  ASSERT_TRUE(leave_a_walk());
  const FaultsThatLeave handler(vms());
  EXPECT_TRUE(handler.leaves(&fault_over_old_frames));
  EXPECT_EQ(contained(), before) << "the fault is no walk's";
}

TEST_F(ProtectionTest, AFaultOfAnyKindIsContainedAndNoOtherSignalIs) {
  int asked_as = 0;
  volatile bool known = false;
  const FaultsThatLeave handler([&](int, siginfo_t* info, void* context) {
    known = session().jvm().handle_fault(asked_as, info, context);
    return false;
  });
  for (const auto& [signal, is_fault] : {std::pair(SIGSEGV, true),
                                         {SIGBUS, true},
                                         {SIGFPE, true},
                                         {SIGILL, true},
                                         {SIGPIPE, false},
                                         {SIGXFSZ, false}}) {
    asked_as = signal;
    known = false;
    const jlong before = contained();
    EXPECT_EQ(handler.leaves([this] { faulting_walk(); }), !is_fault) << strsignal(signal);
    EXPECT_EQ(contained(), before + (is_fault ? 1 : 0)) << strsignal(signal);
    EXPECT_EQ(known, !is_fault) << strsignal(signal);
  }
}

TEST_F(ProtectionTest, AFaultIsContainedDownToSomeDepthBelowTheProtectedCall) {
  constexpr uintptr_t kDepth = uintptr_t{128} * 1024;
  constexpr uintptr_t kWord = sizeof(uintptr_t);
  bool upwards = false;
  volatile uintptr_t asked = 0;
  // Until one is contained.
  const FaultsThatLeave handler([&](int signal, siginfo_t* info, void* context) {
    ucontext_t other;
    copy_context(*static_cast<ucontext_t*>(context), &other);
    const uintptr_t sp = get_register(other, Register::sp);
    asked = upwards ? sp - 2 * kDepth : sp + kDepth;
    do {
      asked = upwards ? asked + kWord : asked - kWord;
      set_register(&other, Register::sp, asked);
    } while (!session().jvm().handle_fault(signal, info, &other));
    return false;
  });
  std::array<uintptr_t, 2> limits;
  for (uintptr_t& limit : limits) {
    ASSERT_EQ(faulting_walk(), ASGST_CONTAINED_FAULT);
    limit = asked;
    upwards = true;
  }
  EXPECT_EQ(limits[0] + kWord - limits[1], kDepth) << "its own frame is not below it";
}

TEST_F(ProtectionTest, AFaultOfAnotherThreadIsNotContainedByThisThreadsCall) {
  volatile pid_t other = 0;
  volatile bool known = true;
  const FaultsThatLeave handler([&](int signal, siginfo_t* info, void* context) {
    std::thread([&] {
      other = gettid();
      known = session().jvm().handle_fault(signal, info, context);
    }).join();
    return session().jvm().handle_fault(signal, info, context);
  });
  const jint result = faulting_walk();
  if (gettid() == other) {
    ADD_FAILURE() << "it has gone on, on a stack that is not its own";
    std::_Exit(1);
  }
  EXPECT_FALSE(known);
  EXPECT_EQ(result, ASGST_CONTAINED_FAULT);
}

TEST_F(ProtectionTest, AFaultIsContainedByTheInnermostCall) {
  volatile jint inner = 0;
  volatile bool nested = false;
  const FaultsThatLeave handler([&](int signal, siginfo_t* info, void* context) {
    if (!nested) {
      nested = true;
      sigset_t faults;
      sigemptyset(&faults);
      sigaddset(&faults, SIGSEGV);
      pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
      inner = faulting_walk();
    }
    return session().jvm().handle_fault(signal, info, context);
  });
  const jlong before = contained();
  // Without an alternate stack its handlers are below what they interrupt.
  std::thread([&] { EXPECT_EQ(faulting_walk(), ASGST_CONTAINED_FAULT); }).join();
  EXPECT_EQ(inner, ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before + 2);
}

// From start_single_step() until a fault.
void at_each_instruction(std::function<void(const ucontext_t&)> act) {
  static std::function<void(const ucontext_t&)> action;
  action = std::move(act);
  signals::own(
      SIGTRAP,
      [](int, siginfo_t*, void* context) { action(*static_cast<const ucontext_t*>(context)); }, 0,
      {});
}

TEST_F(ProtectionTest, AWalkThatIsInterruptedAnywhereByOneThatIsLeftIsProtected) {
  // More instructions than there are between two looks at what other walks have taken.
  constexpr int kLong = 16;
  volatile int step = 0;
  volatile int left = 0;
  volatile bool leaving = false;
  const FaultsThatLeave handler([&](int signal, siginfo_t* info, void* context) {
    return !leaving && session().jvm().handle_fault(signal, info, context);
  });
  // One that is not left gives back what one that was has taken.
  at_each_instruction([&](const ucontext_t&) {
    step = step + 1;
    leaving = step / kLong % 2 != 0;
    if (handler.leaves([this] { faulting_walk(); })) left = left + 1;
    leaving = false;
  });
  for (int first = 0; first < 2 * kLong; first += 4) {
    step = first;
    volatile jint result = 0;
    ASSERT_FALSE(handler.leaves([&] {
      start_single_step();
      result = faulting_walk();
    }));
    ASSERT_EQ(result, ASGST_CONTAINED_FAULT);
  }
  EXPECT_GT(left, 0);
}

// By what stands above sp.
bool is_in_a_call(uintptr_t sp) {
  constexpr uintptr_t kSeal = 0x5afe5afecafe;
  for (uintptr_t frame = sp; frame < sp + 1024; frame += sizeof(frame)) {
    const auto* const word = reinterpret_cast<const uintptr_t*>(frame + sizeof(sigjmp_buf));
    if (*word == (frame ^ kSeal)) return true;
  }
  return false;
}

// At each instruction from the seal on, until the call is left.
TEST_F(ProtectionTest, AProtectionContainsNothingUntilItsCallCanBeLeft) {
  volatile int refused = 0;
  volatile jint result = 0;
  const jlong before = contained();
  const FaultsThatLeave handler(vms());
  at_each_instruction([&](const ucontext_t& context) {
    const uintptr_t sp = get_register(context, Register::sp);
    if (!is_in_a_call(sp)) return;
    ucontext_t below;
    copy_context(context, &below);
    set_register(&below, Register::sp, sp - 256);
    siginfo_t info = {};
    EXPECT_FALSE(session().jvm().handle_fault(SIGSEGV, &info, &below));
    refused = refused + 1;
  });
  ASSERT_FALSE(handler.leaves([&] {
    start_single_step();
    result = faulting_walk();
  }));
  EXPECT_GT(refused, 0);
  EXPECT_EQ(result, ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before + 1);
}

// As one in a file that was truncated.
TEST_F(ProtectionTest, AStackThatIsNotThereIsUnreadableWithoutAFault) {
  const int file = memfd_create("stack", 0);
  constexpr size_t kSize = 65536;
  void* const stack = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(stack, MAP_FAILED);
  ucontext_t context;
  copy_context(*victim(ScenarioId::parked).slot->context, &context);
  set_register(&context, Register::sp, reinterpret_cast<uintptr_t>(stack));
  set_register(&context, Register::fp, reinterpret_cast<uintptr_t>(stack) + kSize / 2);
  const jlong before = contained();
  EXPECT_NE(walk_context(&context, ASGST_INCLUDE_NON_JAVA_THREADS).trace.num_frames,
            ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before);
}

TEST_F(ProtectionTest, WhereThereIsRoomForNoMoreAWalkGoesOnUnprotected) {
  constexpr int kMoreThanThereIsRoomFor = 65;
  std::latch end(1);
  std::binary_semaphore left(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kMoreThanThereIsRoomFor; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(leave_a_walk());
      left.release();
      end.wait();
    });
    left.acquire();
  }
  const FaultsThatLeave handler(vms());
  EXPECT_TRUE(handler.leaves([this] { faulting_walk(); }));
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0);
  end.count_down();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace framestorm
