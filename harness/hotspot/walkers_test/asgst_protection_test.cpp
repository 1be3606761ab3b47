// What faults inside a walk: contained and counted, whatever becomes of the walk.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <vector>

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
  using Handle = int (*)(int, siginfo_t*, void*, int);
  // `first`: asked before it leaves, may be null.
  explicit FaultsThatLeave(Handle first = nullptr) {
    first_ = first;
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      if (first_ != nullptr && first_(signal, info, context, 0) != 0) return;
      siglongjmp(out_, 1);
    };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~FaultsThatLeave() { sigaction(SIGSEGV, &before_, nullptr); }
  FaultsThatLeave(const FaultsThatLeave&) = delete;
  FaultsThatLeave& operator=(const FaultsThatLeave&) = delete;

  // Whether the body was left. It must have nothing to destroy.
  template <typename Body>
  bool leaves(Body body) const {
    if (sigsetjmp(out_, 1) != 0) return true;
    body();
    return false;
  }

 private:
  static inline sigjmp_buf out_;
  static inline Handle first_ = nullptr;
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
  const auto vm = function<FaultsThatLeave::Handle>("JVM_handle_linux_signal");
  const jlong before = contained();
  ASSERT_TRUE(leave_a_walk());
  const FaultsThatLeave handler(vm);
  EXPECT_TRUE(handler.leaves(&fault_over_old_frames));
  EXPECT_EQ(contained(), before) << "the fault is no walk's";
}

}  // namespace
}  // namespace framestorm
