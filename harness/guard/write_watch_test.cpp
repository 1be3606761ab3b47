#include "harness/guard/write_watch.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "harness/guard/guard_fixture.h"

namespace framestorm {
namespace {

using Range = WriteWatch::Range;

constexpr size_t kPage = 4096;
constexpr Range kAnywhere = {0, UINTPTR_MAX};

std::atomic<uintptr_t*> target{nullptr};

FRAMESTORM_TEST_FRAME void store_words() {
  uintptr_t* const words = target.load();
  words[1] = 11;
  words[2] = 12;  // of the same page
  words[kPage / sizeof(uintptr_t)] = 13;
}

class WriteWatchTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { Guard::install({}, guard_test::kTestLimits); }
  WriteWatchTest() {
    pages_ = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    target = words();
  }
  ~WriteWatchTest() override { munmap(pages_, 2 * kPage); }

  uintptr_t* words() const { return static_cast<uintptr_t*>(pages_); }
  Range owned() const {
    const auto begin = reinterpret_cast<uintptr_t>(pages_);
    return {begin, begin + 2 * kPage};
  }
  WalkWrites watched(const Range& writer, const Range& exempt, void (*fn)() = &store_words) {
    WriteWatch watch;
    watch.prepare(writer, owned());
    watch.exempt(exempt);
    WalkWrites writes;
    watch.begin(&writes);
    const auto walked = guard_test::walk(fn);
    watch.end();
    EXPECT_EQ(walked.end, WalkEnd::returned);
    return writes;
  }
  uintptr_t address_of(size_t word) const { return reinterpret_cast<uintptr_t>(words() + word); }

  void* pages_ = nullptr;
};

TEST_F(WriteWatchTest, TheFirstWriteToEachPageIsNotedAndMade) {
  for (int i = 0; i < 3; ++i) {
    const WalkWrites writes = watched(kAnywhere, {});
    ASSERT_EQ(writes.count, 2U) << i;
    EXPECT_EQ(writes.writes[0].address, address_of(1));
    EXPECT_EQ(writes.writes[1].address, address_of(kPage / sizeof(uintptr_t)));
    const auto stack = guard_test::names_of({writes.writes[0].stack, writes.writes[0].stack_size});
    ASSERT_GE(stack.size(), 2U);
    EXPECT_EQ(stack[0], "store_words");
    EXPECT_EQ(words()[1], 11U);
    EXPECT_EQ(words()[2], 12U);
  }
  words()[1] = 0;  // as before
}

TEST_F(WriteWatchTest, WhatIsAllocatedIsWatched) {
  const auto block = std::make_unique<uintptr_t[]>(2 * kPage / sizeof(uintptr_t));
  target = block.get();
  const WalkWrites writes = watched(kAnywhere, {});
  EXPECT_EQ(writes.count, 2U);
  EXPECT_EQ(block[2], 12U);
}

TEST_F(WriteWatchTest, OthersAndWhatIsExemptAreNotNoted) {
  EXPECT_EQ(watched({0, kPage}, {}).count, 0U) << "instructions of somebody else";
  EXPECT_EQ(words()[1], 11U);
  EXPECT_EQ(watched(kAnywhere, {address_of(0), address_of(2)}).count, 1U);
  EXPECT_EQ(watched(kAnywhere, {}, [] {}).count, 0U);
}

TEST_F(WriteWatchTest, AnotherThreadGoesOn) {
  WriteWatch watch;
  std::atomic<bool> go{false}, gone{false};
  std::thread other([&] {
    while (!go.load()) std::this_thread::yield();
    words()[5] = 1;
    gone = true;
  });
  watch.prepare(kAnywhere, owned());
  WalkWrites writes;
  watch.begin(&writes);
  go = true;
  while (!gone.load()) std::this_thread::yield();
  watch.end();
  other.join();
  EXPECT_EQ(writes.count, 0U);
  EXPECT_EQ(words()[5], 1U);
}

// Another thread may be told of its fault when the watch is over.
TEST_F(WriteWatchTest, ALateWriteIsMadeAgainOnce) {
  EXPECT_EQ(watched(kAnywhere, {}).count, 2U);
  mprotect(pages_, kPage, PROT_READ);
  const auto walked = guard_test::walk(&store_words);
  ASSERT_EQ(walked.end, WalkEnd::fault);
  ucontext_t context = {};
  std::ranges::copy(walked.fault.registers, context.uc_mcontext.gregs);
  siginfo_t info = {};
  info.si_code = SEGV_ACCERR;
  info.si_addr = words() + 7;
  EXPECT_TRUE(WriteWatch::takes(SIGSEGV, &info, &context));
  EXPECT_FALSE(WriteWatch::takes(SIGSEGV, &info, &context)) << "the page is not writable";
  info.si_code = SEGV_MAPERR;
  info.si_addr = words() + 8;
  EXPECT_FALSE(WriteWatch::takes(SIGSEGV, &info, &context));
}

TEST_F(WriteWatchTest, AFaultThatIsNoneOfThoseIsAFault) {
  WriteWatch watch;
  watch.prepare(kAnywhere, owned());
  WalkWrites writes;
  watch.begin(&writes);
  const auto walked = guard_test::walk([] { *reinterpret_cast<volatile int*>(0x10) = 1; });
  watch.end();
  EXPECT_EQ(walked.end, WalkEnd::fault);
  EXPECT_EQ(writes.count, 0U);
}

}  // namespace
}  // namespace framestorm
