#include "harness/guard/write_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <thread>

#include "harness/guard/guard_fixture.h"

namespace framestorm {
namespace {

using Range = WriteWatch::Range;

constexpr size_t kPage = 4096;
constexpr Range kAnywhere = {0, UINTPTR_MAX};

std::atomic<uintptr_t*> target{nullptr};

// What the copy of the process has of its walk.
struct InCopy {
  WalkEnd end = WalkEnd::count;
  uintptr_t words[3] = {};
};

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
    in_copy_ = static_cast<InCopy*>(
        mmap(nullptr, sizeof(InCopy), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  void TearDown() override {
    munmap(in_copy_, sizeof(InCopy));
    munmap(pages_, 2 * kPage);
  }

  uintptr_t* words() const { return static_cast<uintptr_t*>(pages_); }
  Range owned() const {
    const auto begin = reinterpret_cast<uintptr_t>(pages_);
    return {begin, begin + 2 * kPage};
  }
  WalkWrites watched(const Range& writer, const Range& exempt, void (*fn)() = &store_words) {
    WriteWatch watch;
    const WalkWrites writes = watched(&watch, writer, exempt, fn);
    EXPECT_EQ(watch.counts().made, 1U);
    EXPECT_EQ(watch.counts().not_watched, 0U);
    return writes;
  }
  WalkWrites watched(WriteWatch* made_by, const Range& writer, const Range& exempt, void (*fn)()) {
    WriteWatch& watch = *made_by;
    watch.prepare(writer, owned());
    watch.exempt(exempt);
    *in_copy_ = {};
    Walk walk = {fn, in_copy_};
    watch.make(
        [](void* arg) {
          const auto* const of = static_cast<const Walk*>(arg);
          of->in_copy->end = guard_test::walk(of->fn).end;
          std::copy_n(target.load(), std::size(of->in_copy->words), of->in_copy->words);
        },
        &walk);
    return watch.writes();
  }
  uintptr_t address_of(size_t word) const { return reinterpret_cast<uintptr_t>(words() + word); }

  struct Walk {
    void (*fn)();
    InCopy* in_copy;
  };
  void* pages_ = nullptr;
  InCopy* in_copy_ = nullptr;  // shared with the copies
};

TEST_F(WriteWatchTest, TheFirstWriteToEachPageIsNotedAndMadeInACopyAlone) {
  for (int i = 0; i < 3; ++i) {
    const WalkWrites writes = watched(kAnywhere, {});
    ASSERT_EQ(writes.count, 2U) << i;
    EXPECT_EQ(writes.writes[0].address, address_of(1));
    EXPECT_EQ(writes.writes[1].address, address_of(kPage / sizeof(uintptr_t)));
    const auto stack = guard_test::names_of({writes.writes[0].stack, writes.writes[0].stack_size});
    ASSERT_GE(stack.size(), 2U);
    EXPECT_EQ(stack[0], "store_words");
    EXPECT_EQ(in_copy_->end, WalkEnd::returned);
    EXPECT_EQ(in_copy_->words[1], 11U);
    EXPECT_EQ(in_copy_->words[2], 12U);
    EXPECT_EQ(words()[1], 0U);
  }
}

TEST_F(WriteWatchTest, WhatIsAllocatedIsWatched) {
  const auto block = std::make_unique<uintptr_t[]>(2 * kPage / sizeof(uintptr_t));
  target = block.get();
  EXPECT_EQ(watched(kAnywhere, {}).count, 2U);
  EXPECT_EQ(in_copy_->words[2], 12U);
}

// In a heap of glibc's that it has mapped for the thread.
TEST_F(WriteWatchTest, WhatAnotherThreadAllocatesIsWatched) {
  std::unique_ptr<uintptr_t[]> block;
  std::thread([&block] {
    block = std::make_unique<uintptr_t[]>(2 * kPage / sizeof(uintptr_t));
  }).join();
  target = block.get();
  EXPECT_EQ(watched(kAnywhere, {}).count, 2U);
}

// As a walk's own stack or the array of its frames may, where the kernel puts it there by chance.
TEST_F(WriteWatchTest, OtherMemoryThatBeginsWhereAHeapMayIsNotWatched) {
  constexpr uintptr_t kMostOfHeap = uintptr_t{64} << 20;
  void* memory = MAP_FAILED;
  uintptr_t at = reinterpret_cast<uintptr_t>(pages_) / kMostOfHeap * kMostOfHeap;
  for (; memory == MAP_FAILED && at > kMostOfHeap; at -= kMostOfHeap) {
    memory = mmap(reinterpret_cast<void*>(at), 2 * kPage, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  ASSERT_NE(memory, MAP_FAILED);
  target = static_cast<uintptr_t*>(memory);
  EXPECT_EQ(watched(kAnywhere, {}).count, 0U);
  EXPECT_EQ(in_copy_->words[2], 12U);
  munmap(memory, 2 * kPage);
}

TEST_F(WriteWatchTest, OthersAndWhatIsExemptAreNotNoted) {
  EXPECT_EQ(watched({0, kPage}, {}).count, 0U) << "instructions of somebody else";
  EXPECT_EQ(in_copy_->words[1], 11U);
  EXPECT_EQ(watched(kAnywhere, {address_of(0), address_of(2)}).count, 1U);
  EXPECT_EQ(watched(kAnywhere, {}, [] {}).count, 0U);
}

// As one that ends does, where glibc frees its memory. A fault would end the process.
TEST_F(WriteWatchTest, AnotherThreadWritesThereWithAllSignalsBlocked) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> written{0};
  std::thread other([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (!stop.load()) static_cast<volatile uintptr_t*>(pages_)[5] = ++written;
  });
  while (written.load() == 0) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watched(kAnywhere, {}).count, 2U);
  stop = true;
  other.join();
}

TEST_F(WriteWatchTest, AWalkThatDoesNotEndIsWaitedForNoLonger) {
  WriteWatch watch;
  const WalkWrites writes = watched(&watch, kAnywhere, {}, [] {
    store_words();
    for (;;) pause();
  });
  EXPECT_EQ(writes.count, 2U);
  EXPECT_EQ(watch.counts().not_watched, 1U);
}

TEST_F(WriteWatchTest, AFaultThatIsNoneOfThoseIsAFault) {
  const auto faulting = [] { *reinterpret_cast<volatile int*>(0x10) = 1; };
  EXPECT_EQ(watched(kAnywhere, {}, faulting).count, 0U);
  EXPECT_EQ(in_copy_->end, WalkEnd::fault);
  EXPECT_EQ(guard_test::walk(faulting).end, WalkEnd::fault);
}

TEST_F(WriteWatchTest, ItsCopySaysNothing) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(watched(kAnywhere, {},
                    [] {
                      store_words();
                      static_cast<void>(write(STDERR_FILENO, "said\n", 5));
                    })
                .count,
            2U);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace framestorm
