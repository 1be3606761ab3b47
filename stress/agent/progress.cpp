#include "stress/agent/progress.h"

#include <algorithm>

namespace framestorm::stress {

uint64_t Progress::note(uint64_t begin, uint64_t end, uint64_t interval, uint64_t delivery) {
  const uint64_t around = delivery + kRefill;
  // Longer than that it waited for a core, or for something else.
  const uint64_t gap = begin > end_ ? std::min(begin - end_, 2 * interval + around) : 0;
  end_ = end;
  own_ += gap > around ? gap - around : 0;
  taken_ += end - begin + around;
  if (own_ + taken_ < kSlice) return 0;
  const uint64_t owed = taken_ / (kLeastShare - 1);
  const uint64_t left_alone = owed > own_ ? owed - own_ + around : 0;
  own_ = taken_ = 0;
  end_ += left_alone;
  return left_alone;
}

}  // namespace framestorm::stress
