// The mappings of this process, as the kernel lists them.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace framestorm {

struct MemoryMapping {
  uintptr_t begin = 0, end = 0;
  char access[5] = "";  // "rwxp"
  char name[16] = "";   // as much of a path as there is room for; empty: anonymous
};

// In ascending order. Allocates and opens a file: not in signal context outside the loop.
inline std::vector<MemoryMapping> read_memory_map() {
  std::vector<MemoryMapping> mappings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MemoryMapping one;
    const int fields = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %15s",
                                   &one.begin, &one.end, one.access, one.name);
    if (fields >= 3) mappings.push_back(one);
  }
  return mappings;
}

}  // namespace framestorm
