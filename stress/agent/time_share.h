// Work that has to wait for the JVM takes a tenth of the judge's time at most: samples must not be
// lost meanwhile.
#pragma once

#include <cstdint>

namespace framestorm::stress {

// One thread's. Times in ns, of the same clock.
class TimeShare {
 public:
  bool may_begin(uint64_t now) const { return now >= not_before_; }
  void took(uint64_t begin, uint64_t end) { not_before_ = end + 9 * (end - begin); }

 private:
  uint64_t not_before_ = 0;
};

}  // namespace framestorm::stress
