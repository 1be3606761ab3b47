// What the kernel lets this process execute.
#pragma once

#include <cstdint>
#include <vector>

namespace framestorm {

// Learns the mappings when an address is in none that it knows, so that code that was loaded since is code.
// Allocates: not in signal context outside the loop. One thread at a time.
class ExecutableMemory {
 public:
  bool contains(uintptr_t address);

 private:
  struct Range {
    uintptr_t begin = 0, end = 0;
  };
  bool knows(uintptr_t address) const;
  void learn();

  std::vector<Range> ranges_;
};

}  // namespace framestorm
