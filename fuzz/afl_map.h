// AFL++'s coverage map of one execution:
//
//   [0] AFL++'s own, always 1   [1..] a byte per edge of libjvm   [then] the counters of feedback.h
//
// AFL++ puts the counters into ranges by itself: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127,
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace framestorm {

// Bytes that a map for so many counters of libjvm and of feedback.h needs; a multiple of 64.
constexpr size_t afl_map_size(size_t counters, size_t feedback) {
  return (1 + counters + feedback + 63) / 64 * 64;
}

// Writes them behind map[0]; what does not fit, as nothing should, is left out. Allocates nothing.
void fold(std::span<const uint8_t> counters, std::span<const uint8_t> feedback,
          std::span<uint8_t> map);

// How many coverage counters a shared library has, from its file: AFL++ wants to know the size of
// the map before there is a JVM. 0 for one without; throws SetupError for a file that is no ELF.
size_t coverage_counters_in(const std::filesystem::path& library);

}  // namespace framestorm
