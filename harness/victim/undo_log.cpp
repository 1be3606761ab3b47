#include "harness/victim/undo_log.h"

#include <cstring>

namespace framestorm {
namespace {

uint64_t load(uintptr_t address, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), size);
  return value;
}

void store(uintptr_t address, uint64_t value, size_t size) {
  std::memcpy(reinterpret_cast<void*>(address), &value, size);
}

}  // namespace

bool UndoLog::write(uintptr_t address, uint64_t value, size_t size) {
  if (size_ == kCapacity) return false;
  uint64_t written = 0;
  std::memcpy(&written, &value, size);
  entries_[size_++] = {address, load(address, size), written, size};
  store(address, value, size);
  return true;
}

bool UndoLog::revert() {
  for (size_t i = size_; i-- > 0;) store(entries_[i].address, entries_[i].before, entries_[i].size);
  bool restored = true;
  for (size_t i = 0; i < size_; ++i) {
    // Of overlapping writes only the first one's `before` is the original.
    bool first = true;
    for (size_t k = 0; k < i && first; ++k) {
      first = entries_[k].address + entries_[k].size <= entries_[i].address ||
              entries_[i].address + entries_[i].size <= entries_[k].address;
    }
    const Entry& entry = entries_[i];
    if (first && load(entry.address, entry.size) != entry.before) restored = false;
  }
  size_ = 0;
  return restored;
}

bool UndoLog::untouched() const {
  for (size_t i = 0; i < size_; ++i) {
    bool overwritten = false;
    for (size_t k = i + 1; k < size_ && !overwritten; ++k) {
      overwritten = entries_[k].address < entries_[i].address + entries_[i].size &&
                    entries_[i].address < entries_[k].address + entries_[k].size;
    }
    const Entry& entry = entries_[i];
    if (!overwritten && load(entry.address, entry.size) != entry.written) return false;
  }
  return true;
}

}  // namespace framestorm
