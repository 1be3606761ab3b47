// When the world is halted anew, and where: by whom the inputs are made decides that.
//
//   engine's, mutated here      a schedule of scenarios; the mutator keeps to the halt
//   engine's, mutated elsewhere as the inputs come: the halt follows their scenario
//   files                       an artifact is tried at one halt after the other
//   mutants of one artifact     at its own scenario and halt
#pragma once

#include <memory>

#include "fuzz/guidance.h"
#include "fuzz/walk_loop.h"
#include "fuzz/walker_choice.h"

namespace framestorm {

// Loop's stack.
class HaltPolicy {
 public:
  HaltPolicy() = default;
  virtual ~HaltPolicy() = default;
  HaltPolicy(const HaltPolicy&) = delete;
  HaltPolicy& operator=(const HaltPolicy&) = delete;

  // Before the first input.
  virtual void begin() {}
  // Before an input that nobody made for the present halt: one that the engine reads from a file.
  virtual void before(const Input& input, std::span<const uint8_t> bytes) = 0;
  // Now and then between two inputs.
  virtual void tick() {}
};

// The policy that the options ask for. All have to outlive it.
std::unique_ptr<HaltPolicy> make_halt_policy(const FuzzOptions& options, const FuzzEngine& engine,
                                             const WalkerChoice& walkers, const Guidance& guidance,
                                             WalkLoop& loop);

}  // namespace framestorm
