#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <vector>

#include "harness/guard/guard_fixture.h"

namespace framestorm {
namespace {

using ::testing::ElementsAre;

constexpr size_t kPage = 4096;

TEST(BacktraceTest, StopsAtBrokenChains) {
  std::array<uintptr_t, 16> stack{};
  const auto at = [&](size_t i) { return reinterpret_cast<uintptr_t>(&stack[i]); };
  const uintptr_t limit = at(0) + sizeof(stack);
  stack[2] = at(6);
  stack[3] = 0x111;
  stack[6] = at(14);
  stack[7] = 0x222;
  stack[14] = 0;
  stack[15] = 0x333;
  const auto trace = [&](uintptr_t sp, uintptr_t fp, uintptr_t end, size_t size = 8) {
    std::vector<uintptr_t> out(8);
    out.resize(frame_pointer_backtrace(0x999, sp, fp, end, out.data(), size));
    return out;
  };
  EXPECT_THAT(trace(at(0), at(2), limit), ElementsAre(0x999, 0x111, 0x222, 0x333));
  EXPECT_THAT(trace(at(0), at(2), limit, 2), ElementsAre(0x999, 0x111));
  EXPECT_TRUE(trace(at(0), at(2), limit, 0).empty());
  EXPECT_THAT(trace(at(0), at(2), at(15)), ElementsAre(0x999, 0x111, 0x222));
  EXPECT_THAT(trace(at(3), at(2), limit), ElementsAre(0x999)) << "frame below sp";
  EXPECT_THAT(trace(at(0), at(2) + 4, limit), ElementsAre(0x999)) << "misaligned";
  EXPECT_THAT(trace(at(0), UINTPTR_MAX - 7, UINTPTR_MAX), ElementsAre(0x999)) << "overflow";
  stack[6] = at(2);
  EXPECT_THAT(trace(at(0), at(2), limit), ElementsAre(0x999, 0x111, 0x222)) << "descending";
  stack[6] = at(6);
  EXPECT_THAT(trace(at(0), at(2), limit), ElementsAre(0x999, 0x111, 0x222)) << "endless";
  Guard::install({}, guard_test::kTestLimits);  // for loads that fault
  void* hole = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  const auto low = reinterpret_cast<uintptr_t>(hole);
  EXPECT_THAT(trace(low, low + 16, low + kPage), ElementsAre(0x999)) << "unmapped";
  munmap(hole, kPage);
}

}  // namespace
}  // namespace framestorm
