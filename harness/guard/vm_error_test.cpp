#include "harness/guard/vm_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdarg>
#include <string_view>

#include "harness/guard/guard_fixture.h"

namespace framestorm {
namespace {

using guard_test::stack_of;
using guard_test::Walk;
using guard_test::walk;

// As libjvm's report functions, which the assert macro calls.
extern "C" [[gnu::noinline]] void report_as_hotspot(const char* file, int line,
                                                    const char* condition, const char* format,
                                                    ...) {
  va_list values;
  va_start(values, format);
  vm_error::on_error(file, line, condition, format, values);
  va_end(values);
}

bool went_on;

extern "C" [[gnu::noinline]] void asserting_walk() {
  went_on = false;
  report_as_hotspot("/src/hotspot/share/runtime/frame.cpp", 207, "assert(is_aligned(sp)) failed",
                    "sp %p of %s, %d", reinterpret_cast<void*>(0x7f01), "victim", -3);
  went_on = true;
}

class VmErrorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { Guard::install({&guard_test::dispatch_claim}, {}); }
  void TearDown() override { guard_test::current_claim = nullptr; }
};

TEST_F(VmErrorTest, EndsTheWalkAndNamesTheCheck) {
  const Walk result = walk(asserting_walk);
  ASSERT_EQ(result.end, WalkEnd::vm_error);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(result.fault.end, WalkEnd::vm_error);
  // Without line and values: those differ between versions and walks.
  EXPECT_STREQ(result.fault.error, "assert(is_aligned(sp)) failed (frame.cpp)");
  EXPECT_STREQ(result.fault.error_detail,
               "assert(is_aligned(sp)) failed at frame.cpp:207: sp 0x7f01 of victim, -3");
  EXPECT_EQ(result.fault.locks_held, 0U);
  EXPECT_EQ(result.unsafe.count, 0U);
  const auto names = stack_of(result.fault);
  ASSERT_GE(names.size(), 2U);
  EXPECT_EQ(names[0], "report_as_hotspot");
  EXPECT_EQ(names[1], "asserting_walk");
}

TEST_F(VmErrorTest, AFatalErrorIsNamedByItsFormat) {
  const Walk result = walk([] {
    report_as_hotspot("frame.cpp", 9, "fatal error", "%s", "no such frame");
    went_on = true;
  });
  ASSERT_EQ(result.end, WalkEnd::vm_error);
  EXPECT_STREQ(result.fault.error, "fatal error: %s (frame.cpp)");
  EXPECT_STREQ(result.fault.error_detail, "fatal error at frame.cpp:9: no such frame");
}

TEST_F(VmErrorTest, LongTextIsCut) {
  const Walk result = walk([] {
    static char text[2000];
    std::fill(std::begin(text), std::end(text) - 1, 'x');
    report_as_hotspot("frame.cpp", 1, text, "%s", text);
  });
  ASSERT_EQ(result.end, WalkEnd::vm_error);
  EXPECT_EQ(std::string_view(result.fault.error).size(), sizeof result.fault.error - 1);
  EXPECT_EQ(std::string_view(result.fault.error_detail).size(),
            sizeof result.fault.error_detail - 1);
}

TEST_F(VmErrorTest, AValueThatCannotBeReadIsAFault) {
  const Walk result = walk([] {
    report_as_hotspot("frame.cpp", 1, "assert(x) failed", "%s",
                      reinterpret_cast<const char*>(0x10));
  });
  ASSERT_EQ(result.end, WalkEnd::fault);
  EXPECT_THAT(stack_of(result.fault), testing::Contains("report_as_hotspot"));
  EXPECT_EQ(walk(asserting_walk).end, WalkEnd::vm_error);
}

TEST_F(VmErrorTest, OutsideOfAWalkHotSpotGoesOn) {
  asserting_walk();
  EXPECT_TRUE(went_on);
}

TEST_F(VmErrorTest, InHotSpotsHandlingOfAFaultItIsARefusal) {
  guard_test::current_claim = [](int, siginfo_t*, void*) {
    report_as_hotspot("signals.cpp", 1, "assert(x) failed", "%s", "");
    return true;
  };
  const Walk result = walk([] { *reinterpret_cast<volatile int*>(0x10) = 1; });
  EXPECT_EQ(result.end, WalkEnd::fault);
  EXPECT_EQ(result.fault.address, 0x10U);
}

}  // namespace
}  // namespace framestorm
