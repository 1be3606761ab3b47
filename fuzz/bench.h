// The loop's cost against bare calls: each halt's walks are done again afterwards, on the same
// halted victim and the same sequence of mutated contexts, with nothing around the calls but one
// guard for many of them.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "harness/executor/session.h"

namespace framestorm {

class Bench {
 public:
  explicit Bench(Session& session) : session_(session) {}

  // Loop's stack, after each walk of the loop, with the bytes of its input.
  void observe(std::span<const uint8_t> bytes, const Outcome& outcome);
  // Loop's stack, world still halted: repeats the halt's walks bare. `loop_ns`: what the loop took.
  void end_halt(Mode mode, uint64_t loop_ns);
  // Loop's stack: cost per walk of the deep-stack victim by depth, bare and through the engine, of
  // each walker that there is.
  void measure_depths();
  // One JSON object.
  void report(FILE* out) const;

 private:
  void measure_depths(WalkerId walker);

  struct Sample {
    size_t offset, size;  // of the input in bytes_
  };
  struct Rates {
    uint64_t walks = 0, loop_ns = 0, bare_walks = 0, bare_ns = 0;
  };
  struct DepthCost {
    WalkerId walker = WalkerId::asgct;
    int32_t depth = 0, frames = 0;
    double bare_ns = 0, executor_ns = 0;
  };

  Session& session_;
  std::vector<uint8_t> bytes_;
  std::vector<Sample> samples_;
  std::array<Rates, static_cast<size_t>(Mode::count)> rates_ = {};
  std::vector<DepthCost> depth_costs_;
};

}  // namespace framestorm
