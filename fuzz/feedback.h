// What the engines (libFuzzer, AFL++) are told about a walk beside the coverage of libjvm: how it
// ended, by scenario and by the kinds of frames it gave.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/executor/executor.h"
#include "harness/input/input.h"

namespace framestorm {

class Feedback {
 public:
  static constexpr size_t kResults = 32;
  static constexpr size_t kFrameKinds = 4;
  static constexpr size_t kEndings =
      static_cast<size_t>(ScenarioId::count) * kResults * kFrameKinds;
  // How a walk ended: its error code, the power of two of its count, or that it did not return; by
  // scenario and by whether the first two frames are native ones. Below kEndings.
  using Ending = uint16_t;
  static constexpr Ending kNothing = UINT16_MAX;
  // `first`, `second`: the walk's frames, where it gave so many.
  static Ending ending_of(const Input& input, const Outcome& outcome,
                          const std::optional<Frame>& first, const std::optional<Frame>& second);

  // Notes a walk. Returns whether the engine was never told of one that ended so.
  bool note(Ending ending);

  // How many different ends the walks of a scenario had.
  size_t ends_of(ScenarioId scenario) const { return ends_[static_cast<size_t>(scenario)]; }

  // Tells the engine, which zeroes its counters before each execution. One per execution.
  void tell(Ending ending);

 private:
  // libFuzzer tells eight ranges of a counter's value apart. Its look at the counters costs per
  // byte, so endings share them.
  static constexpr size_t kEndingsPerCounter = 8;

 public:
  static constexpr size_t kCounters = kEndings / kEndingsPerCounter;
  static std::span<uint8_t, kCounters> counters();

 private:
  std::bitset<kEndings> seen_;
  std::bitset<kEndings> told_;
  std::array<uint8_t, static_cast<size_t>(ScenarioId::count)> ends_ = {};
};

}  // namespace framestorm
