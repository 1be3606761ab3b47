#include "harness/oracles/executable_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace framestorm {

bool ExecutableMemory::contains(uintptr_t address) {
  if (knows(address)) return true;
  learn();
  return knows(address);
}

bool ExecutableMemory::knows(uintptr_t address) const {
  return std::ranges::any_of(
      ranges_, [&](const Range& one) { return one.begin <= address && address < one.end; });
}

void ExecutableMemory::learn() {
  ranges_.clear();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Range one;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &one.begin, &one.end, access) ==
            3 &&
        access[2] == 'x') {
      ranges_.push_back(one);
    }
  }
}

}  // namespace framestorm
