// The unwinder in a program that leaves pages between its segments (CMakeLists.txt links it so).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ucontext.h>

#include "prims/asyncUnwindTables.hpp"

namespace framestorm::unwind_test {
namespace {

TEST(ProgramWithGaps, ItsFunctionsHaveTables) {
  ucontext_t context;
  getcontext(&context);
  const greg_t* const at = context.uc_mcontext.gregs;
  AsyncRegisters registers = {static_cast<uintptr_t>(at[REG_RIP]),
                              static_cast<uintptr_t>(at[REG_RSP]),
                              static_cast<uintptr_t>(at[REG_RBP])};
  dl_find_object found = {};
  ASSERT_EQ(_dl_find_object(reinterpret_cast<void*>(registers.pc), &found), 0);
  ASSERT_TRUE(found.dlfo_eh_frame < found.dlfo_map_start ||
              found.dlfo_eh_frame >= found.dlfo_map_end)
      << "no gaps: this program shows nothing";
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  EXPECT_TRUE(AsyncUnwindTables::is_code(registers.pc));
  EXPECT_FALSE(AsyncUnwindTables::is_code(reinterpret_cast<uintptr_t>(&found)));
  EXPECT_FALSE(AsyncUnwindTables::is_code(reinterpret_cast<uintptr_t>(found.dlfo_eh_frame)));
  EXPECT_EQ(AsyncUnwindTables::step(&registers, /*interrupted=*/true, registers.sp, here + 4096),
            AsyncUnwindTables::Step::stepped);
  EXPECT_EQ(registers.pc, reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

}  // namespace
}  // namespace framestorm::unwind_test
