#include "harness/stepping/arch.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace framestorm::stepping {
namespace {

Flow flow_of(std::initializer_list<uint8_t> bytes) {
  std::vector<uint8_t> code(bytes);
  code.resize(code.size() + kLongestInstruction);
  return flow_at(reinterpret_cast<uintptr_t>(code.data()));
}

TEST(StepArch, CallsAndReturnsAreTold) {
  EXPECT_EQ(flow_of({0xe8, 1, 2, 3, 4}), Flow::call);        // call rel32
  EXPECT_EQ(flow_of({0xff, 0xd0}), Flow::call);              // call rax
  EXPECT_EQ(flow_of({0x41, 0xff, 0xd2}), Flow::call);        // call r10
  EXPECT_EQ(flow_of({0xff, 0x15, 1, 2, 3, 4}), Flow::call);  // call [rip + x]
  EXPECT_EQ(flow_of({0xc3}), Flow::ret);                     // ret
  EXPECT_EQ(flow_of({0xf3, 0xc3}), Flow::ret);               // rep ret
  EXPECT_EQ(flow_of({0xc2, 8, 0}), Flow::ret);               // ret 8
  EXPECT_EQ(flow_of({0xff, 0xe0}), Flow::other);             // jmp rax
  EXPECT_EQ(flow_of({0xe9, 1, 2, 3, 4}), Flow::other);       // jmp rel32
  EXPECT_EQ(flow_of({0xff, 0x75, 0xf8}), Flow::other);       // push [rbp - 8]
  EXPECT_EQ(flow_of({0x48, 0x8b, 0xe8}), Flow::other);       // mov rbp, rax
}

TEST(StepArch, ADeoptimisationHandlerMayBeginBeforeItsEntry) {
  const std::vector<uint8_t> code = {0xe8, 1,    2,    3,   4,
                                     0xeb, 0xf9, 0xeb, 0x10};  // call; jmp -7; jmp +16
  const auto begin = reinterpret_cast<uintptr_t>(code.data());
  EXPECT_EQ(deopt_handler_begin(begin), begin);
  EXPECT_EQ(deopt_handler_begin(begin + 5), begin);
  EXPECT_EQ(deopt_handler_begin(begin + 7), begin + 7);
}

TEST(StepArch, InterpretedFramesAreReadByTheirPointer) {
  std::vector<uintptr_t> stack(16);
  const auto fp = reinterpret_cast<uintptr_t>(&stack[12]);
  stack[12] = 0x1000;
  stack[13] = 0x2000;
  stack[9] = 0x3000;
  stack[4] = 0x4000;
  const InterpretedFrame frame = interpreted_frame(fp);
  EXPECT_EQ(frame.caller_fp, 0x1000U);
  EXPECT_EQ(frame.return_address, 0x2000U);
  EXPECT_EQ(frame.return_slot, fp + 8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.method), 0x3000U);
  EXPECT_EQ(frame.bcp, 0x4000U);
}

}  // namespace
}  // namespace framestorm::stepping
