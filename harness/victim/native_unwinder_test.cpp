// Frames of a halted thread whose calls are known.
#include "harness/victim/native_unwinder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "harness/victim/context.h"
#include "harness/victim/no_return.h"
#include "harness/victim/odd_tables.h"
#include "harness/victim/untabled.h"
#include "harness/victim/world_fixture.h"

namespace framestorm {
namespace {

using world_test::TestThread;
using world_test::WorldTest;

std::atomic<uintptr_t> innermost_frame, outermost_frame;

[[gnu::noinline]] void spin(const std::atomic<bool>& stop, int depth) {
  if (depth > 0) {
    spin(stop, depth - 1);
    asm volatile("" ::: "memory");  // no tail call
    return;
  }
  innermost_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  while (!stop.load(std::memory_order_relaxed)) {
  }
}

bool is_never(const void*, uintptr_t) { return false; }

class NativeUnwinderTest : public WorldTest {
 protected:
  static constexpr size_t kDepth = 5;

  NativeUnwinderTest()
      : thread_([](const std::atomic<bool>& stop) {
          outermost_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
          spin(stop, static_cast<int>(kDepth));
        }) {
    while (innermost_frame == 0) std::this_thread::yield();
    EXPECT_TRUE(world().halt(thread_.tid()));
    slot_ = world().find(thread_.tid());
  }
  ~NativeUnwinderTest() override {
    world().release(slot_);
    innermost_frame = 0;
  }

  template <typename Call>
  void expect_frames_below(Call call, bool (*is_of_it)(uintptr_t), size_t count);

  TestThread thread_;
  ThreadSlot* slot_ = nullptr;
  NativeUnwinder unwinder_;
};

TEST_F(NativeUnwinderTest, GivesTheFramesOfAnotherThread) {
  const auto frames = unwinder_.unwind(*slot_->context, &is_never, nullptr);
  ASSERT_GT(frames.size(), kDepth + 1);
  EXPECT_FALSE(unwinder_.has_ended());
  EXPECT_EQ(frames[0].pc, get_register(*slot_->context, Register::pc));
  EXPECT_EQ(frames[0].sp, get_register(*slot_->context, Register::sp));
  // Each call of spin by itself returns to the same place, but for the outermost one.
  for (size_t i = 1; i < kDepth; ++i) EXPECT_EQ(frames[i].pc, frames[1].pc) << i;
  EXPECT_NE(frames[kDepth + 1].pc, frames[1].pc);
  for (size_t i = 1; i < frames.size(); ++i) EXPECT_GT(frames[i].sp, frames[i - 1].sp) << i;
  EXPECT_LE(frames[1].sp, innermost_frame + 3 * sizeof(uintptr_t));
  EXPECT_GT(frames[1].sp, innermost_frame);
  EXPECT_LT(frames.back().sp, thread_.stack().base);
  EXPECT_GT(frames.back().sp, outermost_frame) << "down to the thread's first frame";
}

TEST_F(NativeUnwinderTest, EndsWhereItIsTold) {
  const auto all = unwinder_.unwind(*slot_->context, &is_never, nullptr);
  ASSERT_GT(all.size(), 2U);
  const uintptr_t outer = all[2].pc;
  std::vector<uintptr_t> pcs;
  for (const NativeFrame& frame : all) pcs.push_back(frame.pc);
  const auto frames = unwinder_.unwind(
      *slot_->context,
      [](const void* with, uintptr_t pc) { return pc == *static_cast<const uintptr_t*>(with); },
      &outer);
  EXPECT_TRUE(unwinder_.has_ended());
  EXPECT_EQ(frames.size(), static_cast<size_t>(std::ranges::find(pcs, outer) - pcs.begin()));
}

const std::atomic<bool>* stop_below = nullptr;

// Of a thread that spins below what `call` calls it by.
template <typename Call>
void NativeUnwinderTest::expect_frames_below(Call call, bool (*is_of_it)(uintptr_t), size_t count) {
  world().release(slot_);
  innermost_frame = 0;
  const TestThread thread([&](const std::atomic<bool>& stop) {
    stop_below = &stop;
    outermost_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    call([] { spin(*stop_below, static_cast<int>(kDepth)); });
  });
  while (innermost_frame == 0) std::this_thread::yield();
  ASSERT_TRUE(world().halt(thread.tid()));
  slot_ = world().find(thread.tid());
  const auto frames = unwinder_.unwind(*slot_->context, &is_never, nullptr);
  const auto is_one = [&](const NativeFrame& frame) { return is_of_it(frame.pc); };
  const auto first = std::ranges::find_if(frames, is_one);
  ASSERT_NE(first, frames.end());
  EXPECT_GT(first - frames.begin(), static_cast<ptrdiff_t>(kDepth));
  const auto behind = std::find_if_not(first, frames.end(), is_one);
  EXPECT_EQ(behind - first, static_cast<ptrdiff_t>(count));
  EXPECT_GT(frames.end() - behind, 1) << "its callers, too";
  for (size_t i = 1; i < frames.size(); ++i) EXPECT_GT(frames[i].sp, frames[i - 1].sp) << i;
  EXPECT_GT(frames.back().sp, outermost_frame) << "down to the thread's first frame";
}

TEST_F(NativeUnwinderTest, GoesOnBelowCodeThatHasNoTable) {
  expect_frames_below(&call_untabled, &is_untabled, 1);
}

TEST_F(NativeUnwinderTest, FollowsUnusualTables) {
  expect_frames_below(&call_oddly_tabled, &is_oddly_tabled, kOddlyTabled);
}

TEST_F(NativeUnwinderTest, GoesOnBelowCallsThatNeverReturn) {
  world().release(slot_);
  static std::atomic<bool> counts;
  counts = false;
  const TestThread thread([](const std::atomic<bool>& stop) {
    outermost_frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    // It comes back from there, again and again.
    while (!stop.load(std::memory_order_relaxed)) {
      count_below_no_return(100'000);
      counts = true;
    }
  });
  while (!counts) std::this_thread::yield();
  constexpr std::array<uintptr_t, 9> kWords = {0, 1, 4, 4, 4, 4, 4, 4, 4};  // above the callee's sp
  const auto is_there = [&](std::span<const NativeFrame> frames) {
    if (frames.size() < kWords.size()) return false;
    for (size_t i = 1; i < kWords.size(); ++i) {
      if (frames[i].sp - frames[i - 1].sp != kWords[i] * sizeof(uintptr_t)) return false;
    }
    return true;
  };
  std::set<uintptr_t> pcs;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(world().halt(thread.tid()));
    slot_ = world().find(thread.tid());
    const auto frames = unwinder_.unwind(*slot_->context, &is_never, nullptr);
    if (is_there(frames)) {
      pcs.insert(frames[0].pc);
      EXPECT_GT(frames.back().sp, outermost_frame) << "down to the thread's first frame";
    }
    world().release(slot_);
  }
  EXPECT_EQ(pcs.size(), 1U) << "the first byte of where it counts";
}

TEST_F(NativeUnwinderTest, GoesOnByItself) {
  // The calling thread runs on as it was.
  const auto before = unwinder_.unwind(*slot_->context, &is_never, nullptr).size();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(unwinder_.unwind(*slot_->context, &is_never, nullptr).size(), before);
  }
}

}  // namespace
}  // namespace framestorm
