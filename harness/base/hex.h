#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace framestorm {

// "0x1f".
inline std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%lx", value);
  return text;
}

}  // namespace framestorm
