// Which counts of which edges the engine knows, so that the driver can try inputs by itself and
// pass on only those that would be news to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace framestorm {

// Counts fall into the eight classes that libFuzzer tells apart: 1, 2, 3, 4-7, 8-15, 16-31, 32-127
// and more (CounterToFeature in its FuzzerTracePC.h). One thread at a time; allocates once.
class Novelty {
 public:
  // Of an execution that the engine looks at, too.
  void told(std::span<const uint8_t> counters);

  // Zeroes the counters of an execution that the engine does not see. Returns whether they had
  // something that was neither told nor returned true for since forget().
  bool take(std::span<uint8_t> counters);

  // What take() found and the engine was not told of since is new once more: not everything comes
  // back when it is tried again.
  void forget() { seen_ = told_; }

 private:
  std::vector<uint8_t> told_;  // by edge, a bit for each class
  std::vector<uint8_t> seen_;  // the same, and what take() found
};

}  // namespace framestorm
