// The array a walker writes its frames to: ends at an unreadable page, so that frames[depth]
// faults, and has a canary right before frames[0]. For a walker that contains its own faults, which
// nobody else would hear of, the page behind the array is a canary, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

// Largest depth the buffer can hold; what DepthKind::huge means.
inline constexpr int32_t kMaxDepth = 1 << 17;

class FrameBuffer {
 public:
  // What a walker meets at frames[depth].
  enum class End : uint8_t { fault, canary };

  // Room for `max_depth` frames of `stride` bytes, the largest depth of place(). Throws
  // std::system_error.
  explicit FrameBuffer(size_t stride, int32_t max_depth = kMaxDepth, End end = End::fault);
  ~FrameBuffer();
  FrameBuffer(const FrameBuffer&) = delete;
  FrameBuffer& operator=(const FrameBuffer&) = delete;

  // The array for that depth, with its canary set. A depth of 0 or less gives the guard page. Its first
  // frames have nothing that was there before, and so nothing of a walk before: what this walk leaves out of
  // a frame is no method, type or tier.
  std::byte* place(int32_t depth);
  bool canary_intact(const std::byte* frames) const;
  // Whether something was written to frames[depth] or beyond, as far as that can be seen afterwards.
  bool is_overrun() const;
  bool in_upper_guard(uintptr_t address) const;

 private:
  size_t stride_;
  std::byte* mapping_;
  size_t mapping_size_;
  std::byte* end_;  // of the array
  size_t end_canary_size_;
  std::byte* guard_;  // start of the upper guard
};

}  // namespace framestorm
