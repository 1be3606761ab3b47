// The loop's cost against bare calls: each halt's walks are done again afterwards, on the same
// halted victim and the same sequence of mutated contexts, with nothing around the calls but one
// guard for many of them.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "fuzz/walk_loop.h"
#include "harness/executor/session.h"

namespace framestorm {

class Bench final : public LoopWatcher {
 public:
  explicit Bench(Session& session) : session_(session) {}

  void walked(std::span<const uint8_t> bytes, const Outcome& outcome) override;
  // Repeats the halt's walks bare.
  void halt_ends(Mode mode, uint64_t loop_ns) override;
  // Cost per walk of the deep-stack victim by depth, bare and through the executor, of each walker
  // that there is.
  void loop_ends() override;
  // One JSON object.
  void report(FILE* out) const override;

 private:
  void measure_depths(WalkerId walker);

  struct Sample {
    size_t offset, size;  // of the input in bytes_
  };
  struct Rates {
    uint64_t walks = 0, loop_ns = 0, bare_walks = 0, bare_ns = 0;
  };
  struct DepthCost {
    WalkerId walker = kDefaultWalker;
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
