#include "harness/oracles/executable_memory.h"

#include <algorithm>

#include "harness/base/memory_map.h"

namespace framestorm {

bool ExecutableMemory::contains(uintptr_t address) {
  if (knows(address)) return true;
  learn();
  return knows(address);
}

bool ExecutableMemory::knows(uintptr_t address) const {
  return std::ranges::any_of(ranges_, [&](const AddressRange& one) { return one.has(address); });
}

void ExecutableMemory::learn() {
  ranges_.clear();
  for (const MemoryMapping& one : read_memory_map()) {
    if (one.access[2] == 'x') ranges_.push_back({one.begin, one.end});
  }
}

}  // namespace framestorm
