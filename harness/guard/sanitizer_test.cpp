#include "harness/guard/sanitizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "harness/guard/guard.h"

extern "C" {
int plugin_read_past(volatile char* block, size_t size);
void plugin_write_past(volatile char* block, size_t size);
int plugin_read_past_fatally(volatile char* block, size_t size);
}

namespace framestorm {
namespace {

using testing::HasSubstr;

struct Walked {
  WalkEnd end = WalkEnd::returned;
  FaultRecord fault;
  UnsafeCalls unsafe;
  SanitizerReports reports;
};

class SanitizerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(pipe(pipe_), 0);
    sanitizer::install(pipe_[1]);
    Guard::install({}, {});
  }

  // What was written about reports outside walks; there has to be something.
  static std::string read_elsewhere() {
    std::string text(size_t{64} << 10, '\0');
    const ssize_t size = read(pipe_[0], text.data(), text.size());
    text.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }

  template <typename Body>
  static Walked walk(Body body) {
    Walked walked;
    walked.end = Guard::call([](void* b) { (*static_cast<Body*>(b))(); }, &body, &walked.fault,
                             &walked.unsafe, &walked.reports);
    return walked;
  }

  static constexpr size_t kSize = 16;
  std::unique_ptr<char[]> block_{new char[kSize]};
  static int pipe_[2];
};

int SanitizerTest::pipe_[2] = {-1, -1};

TEST_F(SanitizerTest, TheAllocatorIsAsans) {
  ASSERT_TRUE(sanitizer::has_asan());
  const auto walked = walk([this] { plugin_read_past(block_.get(), kSize); });
  EXPECT_EQ(walked.reports.count, 1U) << "a block of glibc's has no redzone";
}

TEST_F(SanitizerTest, AReportOfAWalkIsRecordedAndTheWalkGoesOn) {
  bool went_on = false;
  const auto walked = walk([&] {
    plugin_write_past(block_.get(), kSize);
    went_on = true;
  });
  EXPECT_EQ(walked.end, WalkEnd::returned);
  EXPECT_TRUE(went_on);
  ASSERT_EQ(walked.reports.count, 1U);
  const SanitizerReport& report = walked.reports.reports[0];
  EXPECT_STREQ(report.check, "heap-buffer-overflow");
  EXPECT_TRUE(report.is_write);
  EXPECT_EQ(report.access_size, 1U);
  EXPECT_EQ(report.address, reinterpret_cast<uintptr_t>(block_.get()) + kSize);
  EXPECT_THAT(report.place, HasSubstr("0 bytes after 16-byte region"));
  ASSERT_GT(report.stack_size, 0U);
  EXPECT_EQ(report.stack[0], report.pc);
  const auto function = reinterpret_cast<uintptr_t>(&plugin_write_past);
  EXPECT_GT(report.pc, function);
  EXPECT_LT(report.pc, function + 256);
  ASSERT_GT(report.stack_size, 1U);
  EXPECT_NE(report.stack[1], report.pc) << "the caller of the function, not ASan's";
  EXPECT_EQ(walked.unsafe.count, 0U) << "what ASan calls for its report is not the walker's";
}

TEST_F(SanitizerTest, AReportLeavesErrnoAlone) {
  int after = 0;
  walk([&] {
    errno = 4711;
    plugin_read_past(block_.get(), kSize);
    after = errno;
  });
  EXPECT_EQ(after, 4711);
}

TEST_F(SanitizerTest, ThePlaceIsReportedByEachWalk) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(walk([this] { plugin_read_past(block_.get(), kSize); }).reports.count, 1U) << i;
  }
}

TEST_F(SanitizerTest, MoreReportsThanThereIsRoomForAreCounted) {
  const auto walked = walk([this] {
    for (int i = 0; i < 10; ++i) plugin_read_past(block_.get(), kSize);
  });
  EXPECT_EQ(walked.reports.count, 10U);
  EXPECT_STREQ(walked.reports.reports[kMaxSanitizerReports - 1].check, "heap-buffer-overflow");
}

TEST_F(SanitizerTest, AReportOutsideAWalkIsKeptApart) {
  const uint64_t before = sanitizer::reports_elsewhere();
  plugin_read_past(block_.get(), kSize);
  EXPECT_EQ(sanitizer::reports_elsewhere(), before + 1);
  EXPECT_THAT(read_elsewhere(), HasSubstr("heap-buffer-overflow"));
  EXPECT_EQ(walk([] {}).reports.count, 0U);
}

TEST_F(SanitizerTest, WhereAsanEndsTheProcessTheWalkEnds) {
  // The process must not walk on: a death test has one of its own.
  EXPECT_EXIT(
      {
        const auto walked = walk([this] { plugin_read_past_fatally(block_.get(), kSize); });
        const bool right = walked.end == WalkEnd::terminal_call &&
                           std::string(walked.fault.function) == sanitizer::kTerminalCall &&
                           walked.reports.count == 1;
        _exit(right ? 7 : 8);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(SanitizerTest, UbsanInAWalkIsRecorded) {
  const auto walked = walk([] {
    sanitizer::on_ubsan("shift-out-of-bounds", "/src/hotspot/frame.cpp", 207, 5,
                        __builtin_return_address(0), __builtin_frame_address(0));
  });
  ASSERT_EQ(walked.reports.count, 1U);
  EXPECT_STREQ(walked.reports.reports[0].check, "shift-out-of-bounds");
  EXPECT_STREQ(walked.reports.reports[0].place, "frame.cpp:207:5");
}

TEST_F(SanitizerTest, UbsanOutsideAWalkIsKeptApart) {
  sanitizer::on_ubsan("null-pointer-use", "frame.cpp", 1, 2, nullptr, nullptr);
  EXPECT_EQ(read_elsewhere(), "UndefinedBehaviorSanitizer: null-pointer-use in frame.cpp:1:2\n");
}

TEST_F(SanitizerTest, LongNamesAreCut) {
  const std::string name(500, 'x');
  const auto walked =
      walk([&name] { sanitizer::on_ubsan(name.c_str(), name.c_str(), 1, 2, nullptr, nullptr); });
  EXPECT_EQ(std::string(walked.reports.reports[0].check).size(),
            sizeof(SanitizerReport::check) - 1);
  EXPECT_EQ(std::string(walked.reports.reports[0].place).size(),
            sizeof(SanitizerReport::place) - 1);
}

}  // namespace
}  // namespace framestorm
