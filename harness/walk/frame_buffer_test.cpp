#include "harness/walk/frame_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "harness/guard/guard.h"

namespace framestorm {
namespace {

constexpr size_t kStride = 16;

class FrameBufferTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { Guard::install({}, {}); }
};

struct Access {
  volatile char* at = nullptr;
  bool write = false;
};

// What becomes of reading or writing one byte, inside the guard.
FaultRecord touch(const void* at, bool write) {
  Access access = {static_cast<volatile char*>(const_cast<void*>(at)), write};
  FaultRecord fault;
  UnsafeCalls unsafe;
  Guard::call(
      [](void* arg) {
        auto* a = static_cast<Access*>(arg);
        if (a->write) {
          *a->at = 1;
        } else {
          static_cast<void>(*a->at);
        }
      },
      &access, &fault, &unsafe);
  return fault;
}

TEST_F(FrameBufferTest, HoldsExactlyTheFramesOfTheDepth) {
  FrameBuffer buffer(kStride);
  for (const int32_t depth : {1, 2, 17, 2048, kMaxDepth}) {
    std::byte* frames = buffer.place(depth);
    std::byte* end = frames + static_cast<size_t>(depth) * kStride;
    EXPECT_EQ(touch(frames, true).end, WalkEnd::returned) << depth;
    EXPECT_EQ(touch(end - 1, true).end, WalkEnd::returned) << depth;
    for (const bool write : {false, true}) {
      const FaultRecord fault = touch(end, write);
      EXPECT_EQ(fault.end, WalkEnd::fault) << depth;
      EXPECT_EQ(fault.address, reinterpret_cast<uintptr_t>(end)) << depth;
      EXPECT_TRUE(buffer.in_upper_guard(fault.address)) << depth;
    }
    EXPECT_FALSE(buffer.in_upper_guard(reinterpret_cast<uintptr_t>(end - 1)));
  }
}

TEST_F(FrameBufferTest, HasNothingOfTheWalkBefore) {
  FrameBuffer buffer(kStride);
  for (const int32_t depth : {1, 17, 2048}) {
    const size_t size = std::min<size_t>(static_cast<size_t>(depth), 100) * kStride;
    std::memset(buffer.place(depth), 1, size);
    const std::byte* const frames = buffer.place(depth);
    EXPECT_EQ(std::count(frames, frames + size, std::byte{1}), 0) << depth;
  }
}

TEST_F(FrameBufferTest, GivesNoRoomForADepthOfZeroOrLess) {
  FrameBuffer buffer(kStride);
  for (const int32_t depth : {0, -1, INT32_MIN}) {
    const FaultRecord fault = touch(buffer.place(depth), true);
    EXPECT_EQ(fault.end, WalkEnd::fault) << depth;
    EXPECT_TRUE(buffer.in_upper_guard(fault.address)) << depth;
  }
}

TEST_F(FrameBufferTest, CatchesAFrameFarBeyondTheEnd) {
  FrameBuffer buffer(kStride);
  std::byte* frames = buffer.place(4);
  const FaultRecord fault = touch(frames + 1000 * kStride, true);
  EXPECT_EQ(fault.end, WalkEnd::fault);
  EXPECT_TRUE(buffer.in_upper_guard(fault.address));
}

TEST_F(FrameBufferTest, SeesAfterwardsWhatWasWrittenBeyondTheEnd) {
  FrameBuffer buffer(kStride, kMaxDepth, FrameBuffer::End::canary);
  for (const int32_t depth : {0, 1, 17, kMaxDepth}) {
    std::byte* const frames = buffer.place(depth);
    std::byte* const end = frames + static_cast<size_t>(depth) * kStride;
    std::memset(frames, 1, static_cast<size_t>(depth) * kStride);
    EXPECT_FALSE(buffer.is_overrun()) << depth;
    for (const size_t beyond : {size_t{0}, kStride, size_t{4095}}) {
      buffer.place(depth);
      EXPECT_EQ(touch(end + beyond, true).end, WalkEnd::returned) << depth;
      EXPECT_TRUE(buffer.is_overrun()) << depth << " and " << beyond << " bytes";
    }
    buffer.place(depth);
    EXPECT_FALSE(buffer.is_overrun()) << "of the walk before";
    EXPECT_TRUE(buffer.in_upper_guard(touch(end + 4096, true).address)) << depth;
  }
}

TEST_F(FrameBufferTest, SeesEveryByteOfAFrameBeforeTheFirst) {
  FrameBuffer buffer(kStride);
  for (size_t back = 1; back <= 3 * kStride; ++back) {
    std::byte* frames = buffer.place(8);
    EXPECT_TRUE(buffer.canary_intact(frames));
    frames[-static_cast<ptrdiff_t>(back)] ^= std::byte{1};
    EXPECT_FALSE(buffer.canary_intact(frames)) << back << " bytes before";
  }
}

TEST_F(FrameBufferTest, WritingTheFramesLeavesTheCanary) {
  FrameBuffer buffer(kStride);
  std::byte* frames = buffer.place(8);
  std::memset(frames, 0, 8 * kStride);
  EXPECT_TRUE(buffer.canary_intact(frames));
}

}  // namespace
}  // namespace framestorm
