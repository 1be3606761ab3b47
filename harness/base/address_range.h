// Addresses from `begin` up to `end`, which is not among them.
#pragma once

#include <cstdint>

namespace framestorm {

// Signal context.
struct AddressRange {
  uintptr_t begin = 0, end = 0;
  constexpr bool empty() const { return begin == end; }
  constexpr bool has(uintptr_t address) const { return address >= begin && address < end; }
};

}  // namespace framestorm
