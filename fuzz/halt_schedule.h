// The order in which a run halts scenarios, and in which modes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "fuzz/mutator_rng.h"
#include "harness/input/input.h"

namespace framestorm {

class HaltSchedule {
 public:
  // A scenario where nothing happens any more is halted in one round of so many.
  static constexpr uint32_t kSaturatedShare = 8;

  // Each pair of a scenario and a mode once per round, in an order that changes from round to
  // round. Neither list may be empty.
  HaltSchedule(const std::vector<ScenarioId>& scenarios, const std::vector<Mode>& modes,
               uint64_t seed)
      : rng_(seed) {
    for (const ScenarioId scenario : scenarios) {
      for (const Mode mode : modes) pairs_.emplace_back(scenario, mode);
    }
  }

  // `is_saturated` is asked about a scenario from its second round on.
  template <typename Predicate>
  std::pair<ScenarioId, Mode> next(Predicate is_saturated) {
    for (;;) {
      if (at_ == 0) begin_round();
      const auto pair = pairs_[at_];
      at_ = (at_ + 1) % pairs_.size();
      if (rounds_ % kSaturatedShare == 1 || !is_saturated(pair.first)) return pair;
    }
  }

 private:
  void begin_round() {
    ++rounds_;
    for (size_t i = pairs_.size(); i > 1; --i) std::swap(pairs_[i - 1], pairs_[rng_.below(i)]);
  }

  std::vector<std::pair<ScenarioId, Mode>> pairs_;
  size_t at_ = 0;
  uint32_t rounds_ = 0;
  Rng rng_;
};

}  // namespace framestorm
