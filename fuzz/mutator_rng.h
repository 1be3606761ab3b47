// Random numbers of the mutator: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom
// number generators, 2014). Fast, and the same sequence for the same seed everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }

  // 0 .. bound - 1; bound > 0. The bias of below 2^-32 per value does not matter here.
  uint32_t below(size_t bound) {
    return static_cast<uint32_t>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
  }

  bool one_in(uint32_t n) { return below(n) == 0; }

  template <typename T, size_t Size>
  const T& pick(const T (&values)[Size]) {
    return values[below(Size)];
  }

  template <typename Enum>
  Enum any() {
    return static_cast<Enum>(below(static_cast<size_t>(Enum::count)));
  }

 private:
  uint64_t state_;
};

}  // namespace framestorm
