// What an abandoned walk leaves behind in the JavaThread it walked: marks that AsyncGetCallTrace
// sets for its duration (JavaThread::_in_asgct, runtime/javaThread.hpp), which no table exports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace framestorm {

class WalkResidue {
 public:
  static constexpr size_t kMaxMarks = 8;

  // Looks for the bytes that an abandoned walk has changed from 0 to 1. `before` and `after`: the
  // same JavaThread, before a walk and after it was abandoned. Both of `size` bytes.
  void learn(const std::byte* before, const std::byte* after, size_t size);

  size_t count() const { return count_; }

  // The marks of a JavaThread, and back to what they were. Async-signal-safe; on the thread itself
  // or while it is halted.
  std::array<uint8_t, kMaxMarks> read(const void* java_thread) const;
  void restore(void* java_thread, const std::array<uint8_t, kMaxMarks>& marks) const;

 private:
  std::array<size_t, kMaxMarks> offsets_ = {};
  size_t count_ = 0;
};

}  // namespace framestorm
