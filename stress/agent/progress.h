// Whether a sampled thread still gets anywhere. Signals in quick succession may take all of its
// time.
#pragma once

#include <cstdint>

namespace framestorm::stress {

// Of one thread. All times in ns. Async-signal-safe; one caller at a time.
class Progress {
 public:
  // Its own part of a thread's time is at least 1 in so many.
  static constexpr uint64_t kLeastShare = 10;
  // What it gets it gets at once: between two signals that follow each other it does little but
  // fetch into its caches what the kernel and the walk have driven out.
  static constexpr uint64_t kSlice = 1'000'000;
  static constexpr uint64_t kRefill = 10'000;

  // A sample took it from `begin` to `end`, besides `delivery` for the signal; samples are due
  // every `interval`. Returns for how long it is to be left alone from `end` on, 0 mostly.
  uint64_t note(uint64_t begin, uint64_t end, uint64_t interval, uint64_t delivery);

 private:
  uint64_t own_ = 0, taken_ = 0;
  uint64_t end_ = 0;  // of the last sample, or of what it was left alone for
};

}  // namespace framestorm::stress
