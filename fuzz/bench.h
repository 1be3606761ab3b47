// The loop's cost against bare calls: each turn's walks are done again afterwards, on the same halted
// victim and the same mutated contexts, with nothing around the call; a walk that faulted is done
// again inside the guard.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "harness/engine/session.h"

namespace framestorm {

class Bench {
 public:
  explicit Bench(Session& session) : session_(session) {}

  // Loop's stack, after each walk of the loop.
  void observe(const Input& input, const Outcome& outcome);
  // Loop's stack, world still halted: repeats the turn's walks bare. `loop_ns`: what they took.
  void end_turn(uint64_t loop_ns);
  // One JSON object.
  void report(FILE* out);
  // Loop's stack: cost per walk of the deep-stack victim by depth, bare and through the engine.
  void measure_depths();

 private:
  struct Sample {
    ucontext_t context;
    int32_t depth;
    bool guarded;
  };
  struct Rates {
    uint64_t walks = 0, loop_ns = 0, bare_walks = 0, bare_ns = 0;
  };
  struct DepthCost {
    int32_t depth = 0;
    double bare_ns = 0, engine_ns = 0;
  };

  Session& session_;
  std::vector<Input> inputs_;
  std::vector<uint8_t> guarded_;
  uint64_t turn_walks_ = 0;
  std::array<Rates, static_cast<size_t>(Mode::count)> rates_ = {};
  std::vector<DepthCost> depth_costs_;
};

}  // namespace framestorm
