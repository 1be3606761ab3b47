// C frames where the C library has no _dl_find_object: code is what can be read, and frame pointers
// lead on.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "harness/hotspot/unwind_test/safe_fetch.h"
#include "prims/asyncUnwindTables.hpp"

namespace {

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

TEST(WithoutObjects, WhatCanBeReadMayBeCode) {
  framestorm::unwind_test::install_safe_fetch();
  EXPECT_TRUE(AsyncUnwindTables::is_code(
      address_of(reinterpret_cast<const void*>(&framestorm::unwind_test::install_safe_fetch))));
  EXPECT_FALSE(AsyncUnwindTables::is_code(0));
  EXPECT_FALSE(AsyncUnwindTables::is_code(0x1234));
  constexpr size_t kPage = 4096;
  void* const hole = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  EXPECT_FALSE(AsyncUnwindTables::is_code(address_of(hole)));
  munmap(hole, kPage);
}

TEST(WithoutObjects, ThereIsNoTable) {
  framestorm::unwind_test::install_safe_fetch();
  AsyncRegisters registers = {address_of(__builtin_return_address(0)),
                              address_of(__builtin_frame_address(0)), 0};
  const AsyncRegisters before = registers;
  EXPECT_EQ(AsyncUnwindTables::step(&registers, false, before.sp - 4096, before.sp + 4096),
            AsyncUnwindTables::Step::no_table);
  EXPECT_EQ(registers.pc, before.pc);
}

}  // namespace
