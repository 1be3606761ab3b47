// Every change to a victim's memory is noted here first and taken back after the walk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/input/input.h"

namespace framestorm {

// Fixed capacity, no allocation; async-signal-safe. One thread at a time.
class UndoLog {
 public:
  // One mutation changes at most one location.
  static constexpr size_t kCapacity = kMaxMutations;

  // Writes the low `size` bytes (4 or 8) of `value` at `address`, which must be mapped writable.
  // Returns false, changing nothing, when the log is full.
  bool write(uintptr_t address, uint64_t value, size_t size);

  // Restores all locations, newest first, and empties the log. Returns false when a location does
  // not read back as it was before the first write to it.
  bool revert();

  // Whether each location still holds what was last written to it: a walk must not change them.
  bool untouched() const;

  size_t size() const { return size_; }

 private:
  struct Entry {
    uintptr_t address;
    uint64_t before;
    uint64_t written;
    size_t size;
  };
  std::array<Entry, kCapacity> entries_;
  size_t size_ = 0;
};

}  // namespace framestorm
