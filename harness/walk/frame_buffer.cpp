#include "harness/walk/frame_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace framestorm {
namespace {

// Wide enough to catch a write of several frames past the end.
constexpr size_t kGuardBytes = size_t{64} << 10;
constexpr size_t kCanaryBytes = 64;
constexpr int kCanary = 0xC5;

}  // namespace

FrameBuffer::FrameBuffer(size_t stride, int32_t max_depth) : stride_(stride) {
  const size_t room =
      (static_cast<size_t>(max_depth) * stride + kCanaryBytes + 4095) & ~size_t{4095};
  mapping_size_ = room + 2 * kGuardBytes;
  void* mapping =
      mmap(nullptr, mapping_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping the frame buffer");
  }
  mapping_ = static_cast<std::byte*>(mapping);
  if (mprotect(mapping_ + kGuardBytes, room, PROT_READ | PROT_WRITE) != 0) {
    throw std::system_error(errno, std::generic_category(), "protecting the frame buffer");
  }
  guard_ = mapping_ + kGuardBytes + room;
}

FrameBuffer::~FrameBuffer() { munmap(mapping_, mapping_size_); }

std::byte* FrameBuffer::place(int32_t depth) {
  std::byte* frames = depth <= 0 ? guard_ : guard_ - static_cast<size_t>(depth) * stride_;
  std::memset(frames - kCanaryBytes, kCanary, kCanaryBytes);
  return frames;
}

bool FrameBuffer::canary_intact(const std::byte* frames) const {
  std::byte expected[kCanaryBytes];
  std::memset(expected, kCanary, kCanaryBytes);
  return std::memcmp(frames - kCanaryBytes, expected, kCanaryBytes) == 0;
}

bool FrameBuffer::in_upper_guard(uintptr_t address) const {
  const auto guard = reinterpret_cast<uintptr_t>(guard_);
  return address >= guard && address < guard + kGuardBytes;
}

}  // namespace framestorm
