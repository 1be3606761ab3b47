#include "harness/jvm/walk_residue.h"

namespace framestorm {

void WalkResidue::learn(const std::byte* before, const std::byte* after, size_t size) {
  for (size_t at = 0; at < size && count_ < kMaxMarks; ++at) {
    if (before[at] == std::byte{0} && after[at] == std::byte{1}) offsets_[count_++] = at;
  }
}

std::array<uint8_t, WalkResidue::kMaxMarks> WalkResidue::read(const void* java_thread) const {
  std::array<uint8_t, kMaxMarks> marks = {};
  for (size_t i = 0; i < count_; ++i) {
    marks[i] = static_cast<const uint8_t*>(java_thread)[offsets_[i]];
  }
  return marks;
}

void WalkResidue::restore(void* java_thread, const std::array<uint8_t, kMaxMarks>& marks) const {
  for (size_t i = 0; i < count_; ++i) static_cast<uint8_t*>(java_thread)[offsets_[i]] = marks[i];
}

}  // namespace framestorm
