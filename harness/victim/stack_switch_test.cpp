#include "harness/victim/stack_switch.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cstdint>
#include <vector>

namespace framestorm {
namespace {

constexpr size_t kStackSize = 256 << 10;

struct Sides {
  void* outside = nullptr;
  void* inside = nullptr;
  std::vector<std::byte> stack = std::vector<std::byte>(kStackSize);
  std::vector<int> events;
  uintptr_t frame = 0;
  bool aligned = false;
};
Sides sides;

void leave() { framestorm_switch_stack(&sides.inside, sides.outside); }
void enter() { framestorm_switch_stack(&sides.outside, sides.inside); }

class StackSwitch : public testing::Test {
 protected:
  void SetUp() override { sides = Sides{}; }
  static void prepare(void (*entry)()) {
    sides.inside = prepare_stack(sides.stack.data(), kStackSize, entry);
  }
};

TEST_F(StackSwitch, RunsTheEntryOnTheGivenStack) {
  prepare([] {
    sides.frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    // System V ABI: 16-byte alignment before the call that pushed the return address.
    sides.aligned = (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & 15U) == 0;
    for (;;) leave();
  });
  enter();
  const auto begin = reinterpret_cast<uintptr_t>(sides.stack.data());
  EXPECT_GE(sides.frame, begin);
  EXPECT_LT(sides.frame, begin + kStackSize);
  EXPECT_TRUE(sides.aligned);
}

TEST_F(StackSwitch, ContinuesEachSideWhereItLeft) {
  prepare([] {
    for (int i = 0;; ++i) {
      sides.events.push_back(100 + i);
      leave();
    }
  });
  for (int i = 0; i < 3; ++i) {
    sides.events.push_back(i);
    enter();
  }
  EXPECT_EQ(sides.events, (std::vector<int>{0, 100, 1, 101, 2, 102}));
}

TEST_F(StackSwitch, KeepsRegistersAndRoundingOfBothSides) {
  prepare([] {
    std::fesetround(FE_UPWARD);
    for (;;) {
      leave();
      sides.events.push_back(std::fegetround());
    }
  });
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  // More live values than there are callee-saved registers.
  volatile uint64_t seed = 1;
  const uint64_t a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11, e = seed * 13,
                 f = seed * 17, g = seed * 19;
  enter();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  enter();
  EXPECT_EQ(sides.events, std::vector<int>{FE_UPWARD});
  EXPECT_EQ(a + b + c + d + e + f + g, 75U);
}

}  // namespace
}  // namespace framestorm
