// The array a walker writes its frames to: ends at an unreadable page, so that frames[depth]
// faults, and has a canary right before frames[0].
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

// Largest depth the buffer can hold; what DepthKind::huge means.
inline constexpr int32_t kMaxDepth = 1 << 17;

class FrameBuffer {
 public:
  // Room for `max_depth` frames of `stride` bytes, the largest depth of place(). Throws
  // std::system_error.
  explicit FrameBuffer(size_t stride, int32_t max_depth = kMaxDepth);
  ~FrameBuffer();
  FrameBuffer(const FrameBuffer&) = delete;
  FrameBuffer& operator=(const FrameBuffer&) = delete;

  // The array for that depth, with its canary set. A depth of 0 or less gives the guard page.
  std::byte* place(int32_t depth);
  bool canary_intact(const std::byte* frames) const;
  bool in_upper_guard(uintptr_t address) const;

 private:
  size_t stride_;
  std::byte* mapping_;
  size_t mapping_size_;
  std::byte* guard_;  // start of the upper guard
};

}  // namespace framestorm
