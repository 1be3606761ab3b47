#include "fuzz/strict_end.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>

#include "fuzz/options.h"
#include "harness/base/error.h"
#include "harness/base/test_folder.h"
#include "harness/input/binary.h"

namespace strict_end_test {

[[gnu::noinline, gnu::used]] uint64_t walk_one_frame(uint64_t x) {
  volatile uint64_t value = x;
  for (int i = 0; i < 3; ++i) value = value * 3 + 1;
  return value;
}

}  // namespace strict_end_test

namespace framestorm {
namespace {

class StrictEndTest : public testing::Test {
 protected:
  static Finding finding(FindingKind kind) {
    Finding result;
    result.kind = kind;
    result.detail = "what it is";
    result.input.scenario = ScenarioId::c2_inlined;
    result.fault.stack_size = 2;
    result.fault.stack[0] = reinterpret_cast<uintptr_t>(&strict_end_test::walk_one_frame) + 4;
    result.fault.stack[1] = 0x10;
    return result;
  }

  // Exit code; what was said is in said_.
  int report(const Finding& finding) {
    testing::internal::CaptureStderr();
    const int code = report_crash(finding, finding.input, [this](std::string_view name) {
      return (folder_ / std::string(name)).string();
    });
    said_ = testing::internal::GetCapturedStderr();
    return code;
  }

  std::vector<std::filesystem::path> written() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / ".")) {
      files.push_back(entry.path());
    }
    return files;
  }

  bool says(std::string_view words) const { return said_.find(words) != std::string::npos; }

  const TestFolder folder_;
  std::string said_;
};

TEST_F(StrictEndTest, AFaultIsSaidAndWrittenAsLibFuzzerDoesIt) {
  const Finding fault = finding(FindingKind::fault);
  EXPECT_EQ(report(fault), kExitFinding);
  EXPECT_TRUE(says("ERROR: libFuzzer: deadly signal")) << said_;
  EXPECT_TRUE(says("#0 0x")) << said_;
  EXPECT_TRUE(says(" in strict_end_test::walk_one_frame(unsigned long) (")) << said_;
  EXPECT_TRUE(says("#1 0x000000000010  (<unknown module>)")) << said_;
  EXPECT_TRUE(says("DEDUP_TOKEN: strict_end_test::walk_one_frame\n")) << said_;
  EXPECT_TRUE(says("scenario c2-inlined")) << said_;
  ASSERT_EQ(written().size(), 1U);
  const std::filesystem::path artifact = written().front();
  EXPECT_TRUE(artifact.filename().string().starts_with("crash-"));
  EXPECT_TRUE(says("Test unit written to " + (folder_ / artifact.filename().string()).string()));
  std::ifstream file(artifact, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  Input again;
  decode({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, &again);
  EXPECT_EQ(again, fault.input);
}

TEST_F(StrictEndTest, AHangIsATimeout) {
  EXPECT_EQ(report(finding(FindingKind::hang)), kExitTimeout);
  EXPECT_TRUE(says("ERROR: libFuzzer: timeout")) << said_;
  ASSERT_EQ(written().size(), 1U);
  EXPECT_TRUE(written().front().filename().string().starts_with("timeout-"));
}

TEST_F(StrictEndTest, ASanitizersReportHasItsName) {
  Finding report_of_asan = finding(FindingKind::sanitizer);
  report_of_asan.clause = "heap-use-after-free";
  report_of_asan.fault.address = 0x602000001234;
  EXPECT_EQ(report(report_of_asan), kExitFinding);
  EXPECT_TRUE(says("ERROR: AddressSanitizer: heap-use-after-free on address 0x602000001234"))
      << said_;
  Finding report_of_ubsan = finding(FindingKind::sanitizer);
  report_of_ubsan.clause = "shift-out-of-bounds";
  EXPECT_EQ(report(report_of_ubsan), kExitFinding);
  EXPECT_TRUE(says("ERROR: UndefinedBehaviorSanitizer: shift-out-of-bounds")) << said_;
}

TEST_F(StrictEndTest, WithoutAPathNothingIsWritten) {
  const Finding fault = finding(FindingKind::fault);
  testing::internal::CaptureStderr();
  EXPECT_EQ(report_crash(fault, fault.input, [](std::string_view) { return std::string(); }),
            kExitFinding);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("Test unit"), std::string::npos);
}

TEST_F(StrictEndTest, AnArtifactThatCannotBeWrittenIsASetUpError) {
  const Finding fault = finding(FindingKind::fault);
  EXPECT_THROW(
      report_crash(fault, fault.input,
                   [this](std::string_view) { return (folder_ / "missing/crash").string(); }),
      SetupError);
}

TEST(EndProcessTest, RunsNoExitHandlers) {
  EXPECT_EXIT(
      {
        std::atexit([] { std::_Exit(1); });
        end_process(kExitFinding);
      },
      testing::ExitedWithCode(kExitFinding), "");
}

}  // namespace
}  // namespace framestorm
