#include "harness/jvm/bytecodes.h"

#include <gtest/gtest.h>

namespace framestorm {
namespace {

using Bcis = std::vector<int32_t>;

TEST(Bytecodes, InvokesAreFoundAndOperandsAreNotTakenForThem) {
  const uint8_t code[] = {0x10, 0xb6,                       // 0 bipush
                          0xb8, 0xb8, 0xb8,                 // 2 invokestatic
                          0xc4, 0x84, 0,    1,    0, 0xb7,  // 5 wide iinc
                          0xc4, 0x15, 0,    0xb6,           // 11 wide iload
                          0xb9, 0,    1,    1,    0,        // 15 invokeinterface
                          0xba, 0,    1,    0,    0,        // 20 invokedynamic
                          0xb1};
  EXPECT_EQ(invokes_in(code), (Bcis{2, 15, 20}));
}

TEST(Bytecodes, SwitchesAreAsLongAsTheySay) {
  const uint8_t table[] = {0x1a, 0xaa, 0, 0, 0, 0, 0, 0xb6, 0xff, 0xff, 0xff, 0xff, 0, 0,
                           0,    0,    0, 0, 0, 9, 0, 0,    0,    9,    0xb7, 0,    1, 0xb1};
  EXPECT_EQ(invokes_in(table), (Bcis{24}));
  const uint8_t lookup[] = {0x1a, 0xab, 0, 0, 0, 0, 0,    0xb6, 0,    0, 0, 1,
                            0,    0,    0, 5, 0, 0, 0xb6, 9,    0xb8, 0, 1, 0xb1};
  EXPECT_EQ(invokes_in(lookup), (Bcis{20}));
}

TEST(Bytecodes, WhatIsCutOffOrUnknownEndsIt) {
  const uint8_t cut[] = {0xb8, 0, 1, 0xaa};
  EXPECT_EQ(invokes_in(cut), (Bcis{0}));
  const uint8_t unknown[] = {0xb8, 0, 1, 0xca, 0xb8, 0, 1};
  EXPECT_EQ(invokes_in(unknown), (Bcis{0}));
  EXPECT_EQ(invokes_in({}), Bcis());
}

}  // namespace
}  // namespace framestorm
