// Faults that the claim gets first: HotSpot's handler, which makes them good, refuses them or contains them itself.
#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <cstdlib>

#include "harness/guard/guard_fixture.h"

// Of guard_test.cpp.
extern "C" {
void read_address(uintptr_t address);
void walker_outer();
void divide_by_zero();
}

namespace framestorm {
namespace {

using guard_test::current_claim;
using guard_test::GuardTest;
using guard_test::stack_of;
using guard_test::Walk;
using guard_test::walk;

constexpr uintptr_t kUnmapped = 0x10;

// A read that faults. A claim that calls go_on_behind_read() has it done.
uintptr_t behind_read = 0;
void read_unmapped() {
  asm volatile("leaq 1f(%%rip), %%rax\n movq %%rax, %0\n movq (%1), %%rax\n 1:"
               : "=m"(behind_read)
               : "r"(kUnmapped)
               : "rax");
}
void go_on_behind_read(void* context) {
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(behind_read);
}

TEST_F(GuardTest, ClaimedFaultContinuesTheWalk) {
  static int claims;
  claims = 0;
  current_claim = [](int signo, siginfo_t*, void* context) {
    ++claims;
    go_on_behind_read(context);
    return signo == SIGSEGV;
  };
  const Walk result = walk(&read_unmapped);
  EXPECT_EQ(result.end, WalkEnd::returned);
  EXPECT_EQ(result.fault.end, WalkEnd::returned) << "no fault of the walk";
  EXPECT_EQ(claims, 1);
}

TEST_F(GuardTest, RefusedFaultIsRecordedAsItWas) {
  current_claim = [](int, siginfo_t*, void* context) {
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] = 0x1234;
    return false;
  };
  const Walk result = walk(walker_outer);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(stack_of(result.fault).front(), "read_address");
  EXPECT_EQ(result.fault.locks_held, 0U);
}

// Claims with a probing read of its own, as HotSpot does with SafeFetch.
std::atomic<int> nested_claims;
uintptr_t probe_continuation;
bool probing_claim(int, siginfo_t* info, void* context) {
  if (reinterpret_cast<uintptr_t>(info->si_addr) == 2 * kUnmapped) {
    ++nested_claims;
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] =
        static_cast<greg_t>(probe_continuation);
    return true;
  }
  asm volatile("leaq 1f(%%rip), %%rax\n movq %%rax, %0\n movq (%1), %%rax\n 1:"
               : "=m"(probe_continuation)
               : "r"(2 * kUnmapped)
               : "rax");
  return false;
}

TEST_F(GuardTest, NestedFaultInClaimIsClaimed) {
  nested_claims = 0;
  current_claim = probing_claim;
  const Walk result = walk(walker_outer);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(nested_claims, 1);
  EXPECT_EQ(stack_of(result.fault).front(), "read_address");
}

// HotSpot's handler unblocks the signals of faults first. The kernel puts the mask back behind it.
TEST_F(GuardTest, AMaskChangedByAClaimThatReturnsIsNotTheWalks) {
  static sigset_t trap;
  static int claims;
  claims = 0;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  pthread_sigmask(SIG_BLOCK, &trap, nullptr);
  current_claim = [](int, siginfo_t*, void* context) {
    ++claims;
    pthread_sigmask(SIG_UNBLOCK, &trap, nullptr);
    go_on_behind_read(context);
    return true;
  };
  const Walk result = walk(&read_unmapped);
  EXPECT_EQ(result.end, WalkEnd::returned);
  EXPECT_EQ(claims, 1);
  EXPECT_FALSE(result.unsafe.mask_changed);
  sigset_t after;
  pthread_sigmask(SIG_UNBLOCK, &trap, &after);
  EXPECT_EQ(sigismember(&after, SIGTRAP), 1);
}

TEST_F(GuardTest, ClaimThatFaultsOrAbortsIsARefusal) {
  current_claim = [](int signo, siginfo_t*, void*) {
    if (signo == SIGSEGV) {
      divide_by_zero();
    }
    return false;
  };
  for (int i = 0; i < 3; ++i) {
    const Walk result = walk(walker_outer);
    ASSERT_EQ(result.end, WalkEnd::fault);
    EXPECT_EQ(result.fault.signo, SIGSEGV) << "the walk's fault, not the claim's";
    EXPECT_EQ(stack_of(result.fault).front(), "read_address");
  }
  current_claim = [](int, siginfo_t*, void*) {
    read_address(kUnmapped);  // claims itself for ever
    return false;
  };
  EXPECT_EQ(walk(walker_outer).end, WalkEnd::fault);
  current_claim = [](int, siginfo_t*, void*) -> bool { abort(); };
  const Walk result = walk(walker_outer);
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(stack_of(result.fault).front(), "read_address");
}

// As HotSpot's own protection of a walk does.
sigjmp_buf contained_by_claim;

extern "C" [[gnu::noinline]] int contain_own_fault(uintptr_t address) {
  if (sigsetjmp(contained_by_claim, 0) == 0) read_address(address);
  return 0;
}

TEST_F(GuardTest, AFaultThatTheClaimContainsByItselfIsOnRecord) {
  current_claim = [](int, siginfo_t*, void* context) -> bool {
    const auto* interrupted = static_cast<ucontext_t*>(context);
    pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, nullptr);
    siglongjmp(contained_by_claim, 1);
  };
  for (int i = 0; i < 3; ++i) {
    const Walk result = walk([] {
      contain_own_fault(kUnmapped);
      contain_own_fault(kUnmapped + 4096);
    });
    ASSERT_EQ(result.end, WalkEnd::returned);
    EXPECT_EQ(result.fault.end, WalkEnd::fault);
    EXPECT_EQ(result.fault.address, kUnmapped + 4096) << "the last one";
    EXPECT_EQ(stack_of(result.fault).front(), "read_address");
    EXPECT_EQ(stack_of(result.fault).at(1), "contain_own_fault");
  }
  // What comes after is neither taken for a part of the claim that was left nor forgotten.
  current_claim = nullptr;
  static void* volatile block;
  const Walk result = walk([] {
    block = malloc(1);
    free(block);
    read_address(kUnmapped);
  });
  EXPECT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.unsafe.count, 2U);
  EXPECT_EQ(walk([] {}).fault.end, WalkEnd::returned);
}

TEST_F(GuardTest, AFaultAfterAContainedOneIsTheWalks) {
  current_claim = [](int, siginfo_t* info, void*) -> bool {
    if (reinterpret_cast<uintptr_t>(info->si_addr) != kUnmapped) return false;
    siglongjmp(contained_by_claim, 1);
  };
  const Walk result = walk([] {
    contain_own_fault(kUnmapped);
    read_address(kUnmapped + 4096);
  });
  EXPECT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.address, kUnmapped + 4096);
  EXPECT_EQ(result.fault.locks_held, 0U);
}

}  // namespace
}  // namespace framestorm
