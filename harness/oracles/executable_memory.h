// What the kernel lets this process execute.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/base/address_range.h"

namespace framestorm {

// Learns the mappings when an address is in none that it knows, so that code that was loaded since is code.
// Allocates: not in signal context outside the loop. One thread at a time.
class ExecutableMemory {
 public:
  bool contains(uintptr_t address);

 private:
  bool knows(uintptr_t address) const;
  void learn();

  std::vector<AddressRange> ranges_;
};

}  // namespace framestorm
