#include "harness/guard/sanitizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sanitizer/allocator_interface.h>
#include <sanitizer/asan_interface.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "harness/guard/guard.h"
#include "harness/guard/interposer.h"

extern "C" {
int read_byte_recoverable(volatile char* at);
int read_byte_fatal(volatile char* at);
int read_byte_outlined(volatile char* at);
void write_byte_recoverable(volatile char* at);
int read_word_recoverable(volatile int* at);
void copy_recoverable(void* to, const void* from, size_t size);
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

  char* past() const { return block_.get() + kSize; }

  static constexpr size_t kSize = 16;
  std::unique_ptr<char[]> block_{new char[kSize]};
  static int pipe_[2];
};

int SanitizerTest::pipe_[2] = {-1, -1};

TEST_F(SanitizerTest, TheAllocatorIsAsans) {
  ASSERT_TRUE(sanitizer::has_asan());
  const auto walked = walk([this] { read_byte_recoverable(past()); });
  EXPECT_EQ(walked.reports.count, 1U) << "a block of glibc's has no redzone";
}

TEST_F(SanitizerTest, AReportOfAWalkIsRecordedAndTheWalkGoesOn) {
  bool went_on = false;
  const auto walked = walk([&] {
    write_byte_recoverable(past());
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
  ASSERT_GT(report.stack_size, 0U);
  EXPECT_EQ(report.stack[0], report.pc);
  const auto function = reinterpret_cast<uintptr_t>(&write_byte_recoverable);
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
    read_byte_recoverable(past());
    after = errno;
  });
  EXPECT_EQ(after, 4711);
}

TEST_F(SanitizerTest, ThePlaceIsReportedByEachWalk) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(walk([this] { read_byte_recoverable(past()); }).reports.count, 1U) << i;
  }
}

TEST_F(SanitizerTest, MoreReportsThanThereIsRoomForAreCounted) {
  const auto walked = walk([this] {
    for (int i = 0; i < 10; ++i) read_byte_recoverable(past());
  });
  EXPECT_EQ(walked.reports.count, 10U);
  EXPECT_STREQ(walked.reports.reports[kMaxSanitizerReports - 1].check, "heap-buffer-overflow");
}

TEST_F(SanitizerTest, AReportOutsideAWalkIsKeptApart) {
  const uint64_t before = sanitizer::reports_elsewhere();
  read_byte_recoverable(past());
  EXPECT_EQ(sanitizer::reports_elsewhere(), before + 1);
  EXPECT_THAT(read_elsewhere(), HasSubstr("heap-buffer-overflow"));
  EXPECT_EQ(walk([] {}).reports.count, 0U);
}

TEST_F(SanitizerTest, EachKindOfMemoryHasItsCheck) {
  const auto check = [](char* at) {
    const auto walked = walk([at] { read_byte_recoverable(at); });
    return walked.reports.count == 1 ? std::string(walked.reports.reports[0].check) : "no report";
  };
  EXPECT_EQ(check(past()), "heap-buffer-overflow");
  EXPECT_EQ(check(block_.get() - 1), "heap-buffer-overflow");
  std::unique_ptr<char[]> gone{new char[kSize]};
  char* const freed = gone.get();
  gone.reset();
  EXPECT_EQ(check(freed), "heap-use-after-free");
  const std::unique_ptr<char[]> poisoned{new char[4 * kSize]};
  __asan_poison_memory_region(poisoned.get() + kSize, kSize);
  EXPECT_EQ(check(poisoned.get() + kSize), "use-after-poison");
  __asan_unpoison_memory_region(poisoned.get() + kSize, kSize);
}

TEST_F(SanitizerTest, AnAccessThatIsPartlyAllowedIsReportedForTheRest) {
  const std::unique_ptr<char[]> odd{new char[kSize + 2]};
  const auto walked =
      walk([&] { read_word_recoverable(reinterpret_cast<int*>(odd.get() + kSize)); });
  ASSERT_EQ(walked.reports.count, 1U);
  EXPECT_STREQ(walked.reports.reports[0].check, "heap-buffer-overflow");
  EXPECT_EQ(walked.reports.reports[0].access_size, sizeof(int));
}

// These are ASan's reports, not ours.
TEST_F(SanitizerTest, WhatAsansOwnFunctionsFindIsRecordedToo) {
  char to[2 * kSize];
  const auto walked = walk([&] { copy_recoverable(to, block_.get(), kSize + 1); });
  EXPECT_EQ(walked.end, WalkEnd::returned);
  ASSERT_EQ(walked.reports.count, 1U);
  EXPECT_STREQ(walked.reports.reports[0].check, "heap-buffer-overflow");
  EXPECT_THAT(walked.reports.reports[0].place, HasSubstr("0 bytes after 16-byte region"));
  EXPECT_EQ(walked.unsafe.count, 0U);
}

TEST_F(SanitizerTest, AnAddressIsDescribed) {
  const auto describe = [](const char* at) {
    return sanitizer::describe_address(reinterpret_cast<uintptr_t>(at));
  };
  EXPECT_EQ(describe(past()), "0 bytes after 16-byte region");
  EXPECT_EQ(describe(block_.get() - 3), "3 bytes before 16-byte region");
  EXPECT_EQ(describe(block_.get() + 5), "5 bytes inside of 16-byte region");
  EXPECT_EQ(describe(nullptr), "");
}

// A report of the thread's own, made by hand, holds the lock that ASan's reports take.
TEST_F(SanitizerTest, AWalkWaitsForNoLockOfAsans) {
  static std::atomic<bool> reporting;
  static std::atomic<bool> done;
  reporting = done = false;
  // The callback runs with the lock held.
  __asan_set_error_report_callback([](const char*) {
    reporting = true;
    while (!done) std::this_thread::yield();
  });
  std::thread reporter([this] { read_byte_recoverable(past()); });
  while (!reporting) std::this_thread::yield();
  const auto walked = walk([this] { read_byte_recoverable(past()); });
  done = true;
  reporter.join();
  sanitizer::install(pipe_[1]);
  EXPECT_EQ(walked.end, WalkEnd::returned);
  EXPECT_EQ(walked.reports.count, 1U);
}

TEST_F(SanitizerTest, WhereTheCodeEndsTheProcessTheWalkEndsAndTheProcessGoesOn) {
  for (int i = 0; i < 2; ++i) {
    bool went_on = false;
    const auto walked = walk([&] {
      read_byte_fatal(past());
      went_on = true;
    });
    EXPECT_FALSE(went_on);
    ASSERT_EQ(walked.end, WalkEnd::terminal_call);
    EXPECT_STREQ(walked.fault.function, sanitizer::kTerminalCall);
    EXPECT_EQ(walked.fault.locks_held, 0U);
    ASSERT_EQ(walked.reports.count, 1U);
    EXPECT_STREQ(walked.reports.reports[0].check, "heap-buffer-overflow");
  }
}

TEST_F(SanitizerTest, WhereAsanEndsTheProcessTheWalkEnds) {
  // The process must not walk on: a death test has one of its own.
  EXPECT_EXIT(
      {
        const auto walked = walk([this] { read_byte_outlined(past()); });
        const bool right = walked.end == WalkEnd::terminal_call &&
                           std::string(walked.fault.function) == sanitizer::kTerminalCall &&
                           walked.fault.locks_held > 0 && walked.reports.count == 1;
        _exit(right ? 7 : 8);
      },
      testing::ExitedWithCode(7), "");
}

TEST_F(SanitizerTest, WhereAsanEndsTheProcessOutsideAWalkTheLogSaysSo) {
  EXPECT_EXIT(read_byte_outlined(past()), testing::ExitedWithCode(1), "");
  const std::string text = read_elsewhere();
  EXPECT_THAT(text, HasSubstr("heap-buffer-overflow"));
  EXPECT_TRUE(text.ends_with(sanitizer::kEndsProcess)) << text;
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

int allocations = 0;
int outside_allocator = 0;
void note_allocation() {
  ++allocations;
  outside_allocator += interposer::in_allocator() ? 0 : 1;
}

// A thread that is halted in ASan's allocator holds its locks.
TEST_F(SanitizerTest, OperatorsNewAndDeleteAreInTheAllocator) {
  ASSERT_NE(__sanitizer_install_malloc_and_free_hooks(
                [](const volatile void*, size_t) { note_allocation(); },
                [](const volatile void*) { note_allocation(); }),
            0);
  allocations = 0;
  struct alignas(64) Line {
    char bytes[64];
  };
  void* volatile block = ::operator new(8);
  ::operator delete(block, size_t{8});
  block = ::operator new[](8, std::nothrow);
  ::operator delete[](block);
  Line* const volatile line = new Line[2];
  EXPECT_EQ(reinterpret_cast<uintptr_t>(line) % alignof(Line), 0U);
  delete[] line;
  EXPECT_EQ(allocations, 6);
  EXPECT_EQ(outside_allocator, 0);
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
