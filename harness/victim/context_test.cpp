#include "harness/victim/context.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <set>
#include <vector>

namespace framestorm {
namespace {

constexpr auto kRegisters = static_cast<size_t>(Register::count);

TEST(Context, SetsAndGetsEachRegisterAlone) {
  for (size_t i = 0; i < kRegisters; ++i) {
    ucontext_t context = {};
    set_register(&context, static_cast<Register>(i), 0x8000000000000000U + i);
    for (size_t k = 0; k < kRegisters; ++k) {
      EXPECT_EQ(get_register(context, static_cast<Register>(k)),
                k == i ? 0x8000000000000000U + i : 0U)
          << name_of(static_cast<Register>(k)) << " after " << name_of(static_cast<Register>(i));
    }
  }
}

TEST(Context, NamesTheFrameTriple) {
  ucontext_t context = {};
  context.uc_mcontext.gregs[REG_RIP] = 1;
  context.uc_mcontext.gregs[REG_RSP] = 2;
  context.uc_mcontext.gregs[REG_RBP] = 3;
  EXPECT_EQ(get_register(context, Register::pc), 1U);
  EXPECT_EQ(get_register(context, Register::sp), 2U);
  EXPECT_EQ(get_register(context, Register::fp), 3U);
}

TEST(Context, ACopyIsTheSameUntilARegisterOrTheMaskChanges) {
  ucontext_t context = {};
  for (size_t i = 0; i < kRegisters; ++i) set_register(&context, static_cast<Register>(i), i + 1);
  ucontext_t copy = {};
  EXPECT_FALSE(same_context(context, copy));
  copy_context(context, &copy);
  EXPECT_TRUE(same_context(context, copy));
  for (size_t i = 0; i < kRegisters; ++i) {
    const auto reg = static_cast<Register>(i);
    set_register(&copy, reg, 99);
    EXPECT_FALSE(same_context(context, copy)) << name_of(reg);
    set_register(&copy, reg, i + 1);
  }
  EXPECT_TRUE(same_context(context, copy));
  sigaddset(&copy.uc_sigmask, SIGUSR1);
  EXPECT_FALSE(same_context(context, copy));
}

// Stepping --------------------------------------------------------------------------------------

struct Steps {
  int wanted = 0;
  std::vector<uintptr_t> pcs;
};
Steps steps;

void on_step(int, siginfo_t*, void* raw) {
  auto* context = static_cast<ucontext_t*>(raw);
  steps.pcs.push_back(get_register(*context, Register::pc));
  set_single_step(context, static_cast<int>(steps.pcs.size()) < steps.wanted);
}

uint64_t step_for(int wanted) {
  struct sigaction action = {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = &on_step;
  EXPECT_EQ(sigaction(SIGTRAP, &action, nullptr), 0);
  steps.wanted = wanted;
  steps.pcs.clear();
  steps.pcs.reserve(1000);
  start_single_step();
  volatile uint64_t product = 1;
  for (int i = 1; i <= 20; ++i) product = product * 3;
  return product;
}

TEST(Context, StepsTheCallingThreadByOneInstructionASignal) {
  EXPECT_EQ(step_for(40), 3486784401U) << "stepping must not change what a program computes";
  ASSERT_EQ(steps.pcs.size(), 40U);
  const std::set<uintptr_t> places(steps.pcs.begin(), steps.pcs.end());
  EXPECT_GE(places.size(), 4U) << "each signal is at another instruction of the loop";
  for (size_t i = 1; i < steps.pcs.size(); ++i) {
    EXPECT_NE(steps.pcs[i], steps.pcs[i - 1]) << "step " << i << " went nowhere";
  }
}

TEST(Context, AStepThatIsCalledABreakpointIsAStep) {
  ucontext_t stepped = {}, other = {};
  set_single_step(&stepped, true);
  const auto is_step = [](int code, const ucontext_t& context) {
    siginfo_t info = {};
    info.si_code = code;
    return is_single_step(info, context);
  };
  EXPECT_TRUE(is_step(TRAP_TRACE, stepped));
  EXPECT_TRUE(is_step(TRAP_TRACE, other)) << "the last one";
  EXPECT_TRUE(is_step(TRAP_BRKPT, stepped));
  EXPECT_FALSE(is_step(TRAP_BRKPT, other));
  EXPECT_FALSE(is_step(SI_KERNEL, stepped)) << "a breakpoint on its way";
}

TEST(Context, StopsSteppingWhenTold) {
  step_for(1);
  EXPECT_EQ(steps.pcs.size(), 1U);
}

}  // namespace
}  // namespace framestorm
