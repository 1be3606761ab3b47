// Counts of values with a relative error below 2 %, in constant space: 64 buckets for each power of
// two. One writer.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace framestorm::stress {

class Histogram {
 public:
  void add(uint64_t value) {
    ++counts_[index_of(value)];
    ++count_;
    max_ = value > max_ ? value : max_;
  }
  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  // The value that `share` (0..1) of the values do not exceed; 0 without values.
  uint64_t at(double share) const {
    const auto wanted = static_cast<uint64_t>(share * static_cast<double>(count_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return value_of(i) < max_ ? value_of(i) : max_;
    }
    return max_;
  }

 private:
  static constexpr unsigned kBits = 6;

  static size_t index_of(uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    if (width <= kBits) return static_cast<size_t>(value);
    const unsigned shift = width - kBits - 1;
    return (static_cast<size_t>(shift + 1) << kBits) + (static_cast<size_t>(value >> shift) & 63);
  }
  // The highest value of a bucket.
  static uint64_t value_of(size_t index) {
    if (index < (size_t{1} << kBits)) return index;
    const auto shift = static_cast<unsigned>(index >> kBits) - 1;
    return ((uint64_t{64} + (index & 63) + 1) << shift) - 1;
  }

  std::array<uint64_t, (64 - kBits + 1) << kBits> counts_ = {};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace framestorm::stress
