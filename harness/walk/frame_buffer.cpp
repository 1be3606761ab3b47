#include "harness/walk/frame_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace framestorm {
namespace {

// Wide enough to catch a write of several frames past the end.
constexpr size_t kGuardBytes = size_t{64} << 10;
constexpr size_t kCanaryBytes = 64;
constexpr int kCanary = 0xC5;
constexpr size_t kPage = 4096;
// Of the array's beginning, which has most of what walkers write.
constexpr size_t kFreshBytes = 2048;

constexpr auto kExpected = [] {
  std::array<std::byte, kPage> expected = {};
  expected.fill(std::byte{kCanary});
  return expected;
}();

// At most a page.
bool is_canary(const std::byte* begin, size_t size) {
  return std::memcmp(begin, kExpected.data(), size) == 0;
}

}  // namespace

FrameBuffer::FrameBuffer(size_t stride, int32_t max_depth, End end)
    : stride_(stride), end_canary_size_(end == End::canary ? kPage : 0) {
  const size_t array =
      (static_cast<size_t>(max_depth) * stride + kCanaryBytes + kPage - 1) & ~(kPage - 1);
  const size_t room = array + end_canary_size_;
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
  end_ = mapping_ + kGuardBytes + array;
  guard_ = end_ + end_canary_size_;
}

FrameBuffer::~FrameBuffer() { munmap(mapping_, mapping_size_); }

std::byte* FrameBuffer::place(int32_t depth) {
  std::byte* frames = depth <= 0 ? end_ : end_ - static_cast<size_t>(depth) * stride_;
  const size_t fresh = std::min(kFreshBytes, static_cast<size_t>(end_ - frames));
  std::memset(frames - kCanaryBytes, kCanary, kCanaryBytes + fresh);
  // Of no bytes it is slow: libc's masked store there, in the guard, costs a tenth of a microsecond.
  if (end_canary_size_ != 0) std::memset(end_, kCanary, end_canary_size_);
  return frames;
}

bool FrameBuffer::canary_intact(const std::byte* frames) const {
  return is_canary(frames - kCanaryBytes, kCanaryBytes);
}

bool FrameBuffer::is_overrun() const {
  return end_canary_size_ != 0 && !is_canary(end_, end_canary_size_);
}

bool FrameBuffer::in_upper_guard(uintptr_t address) const {
  const auto guard = reinterpret_cast<uintptr_t>(guard_);
  return address >= guard && address < guard + kGuardBytes;
}

}  // namespace framestorm
