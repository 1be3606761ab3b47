#include "fuzz/novelty.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

namespace framestorm {
namespace {

constexpr size_t kBlock = 128;

constexpr uint8_t class_of(unsigned count) {
  if (count == 0) return 0;
  if (count <= 3) return static_cast<uint8_t>(1U << (count - 1));
  if (count < 8) return 1U << 3;
  if (count < 16) return 1U << 4;
  if (count < 32) return 1U << 5;
  return count < 128 ? 1U << 6 : 1U << 7;
}

constexpr auto kClasses = [] {
  std::array<uint8_t, 256> classes = {};
  for (unsigned count = 0; count < classes.size(); ++count) classes[count] = class_of(count);
  return classes;
}();

uint64_t word_at(const uint8_t* data) {
  uint64_t word = 0;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// Most blocks are all zero in every walk: this loop is the cost of looking.
[[gnu::always_inline]] inline bool is_zero(const uint8_t* block) {
  uint64_t any = 0;
  for (size_t i = 0; i < kBlock; i += sizeof(uint64_t)) any |= word_at(block + i);
  return any == 0;
}

// Calls note(index, class) for what is not zero, and zeroes it unless Counter is const.
template <typename Counter, typename Note>
[[gnu::always_inline]] inline void for_each(std::span<Counter> counters, Note note) {
  constexpr bool kZeroes = !std::is_const_v<Counter>;
  Counter* const data = counters.data();
  const size_t size = counters.size();
  size_t block = 0;
  for (; block + kBlock <= size; block += kBlock) {
    if (is_zero(data + block)) continue;
    for (size_t at = block; at < block + kBlock; at += sizeof(uint64_t)) {
      uint64_t word = word_at(data + at);
      if (word == 0) continue;
      if constexpr (kZeroes) std::memset(data + at, 0, sizeof word);
      do {
        const auto shift = static_cast<unsigned>(std::countr_zero(word)) & ~7U;
        note(at + shift / 8, kClasses[(word >> shift) & 0xff]);
        word &= ~(uint64_t{0xff} << shift);
      } while (word != 0);
    }
  }
  for (size_t i = block; i < size; ++i) {
    if (data[i] == 0) continue;
    note(i, kClasses[data[i]]);
    if constexpr (kZeroes) data[i] = 0;
  }
}

}  // namespace

[[gnu::target_clones("avx2", "default")]] void Novelty::told(std::span<const uint8_t> counters) {
  told_.resize(counters.size());
  seen_.resize(counters.size());
  uint8_t* const told = told_.data();
  uint8_t* const seen = seen_.data();
  for_each(counters, [=](size_t i, uint8_t bits) __attribute__((always_inline)) {
    told[i] |= bits;
    seen[i] |= bits;
  });
}

[[gnu::target_clones("avx2", "default")]] bool Novelty::take(std::span<uint8_t> counters) {
  told_.resize(counters.size());
  seen_.resize(counters.size());
  uint8_t* const seen = seen_.data();
  unsigned found = 0;
  for_each(counters, [&found, seen](size_t i, uint8_t bits) __attribute__((always_inline)) {
    found |= bits & ~static_cast<unsigned>(seen[i]);
    seen[i] |= bits;
  });
  return found != 0;
}

}  // namespace framestorm
