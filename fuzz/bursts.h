// libFuzzer's own work on an execution costs as much as a walk, and more with coverage to look at.
// So an execution is a burst of walks: chains of mutants of the input, each of the one before, and
// then the input itself. What is news among the mutants is the next that the engine is given.
#pragma once

#include <array>
#include <vector>

#include "fuzz/guidance.h"
#include "fuzz/mutator.h"
#include "fuzz/novelty.h"
#include "fuzz/walk_loop.h"
#include "harness/victim/scenario.h"

namespace framestorm {

// Loop's stack.
class Bursts {
 public:
  // All have to outlive it.
  Bursts(const Mutator& mutator, Guidance& guidance, WalkLoop& loop)
      : mutator_(mutator), guidance_(guidance), loop_(loop) {}

  // The chains of an input. Coverage counters are zero before and after.
  void walk(const Input& input);
  // The engine looks at these counters itself.
  void told(std::span<const uint8_t> counters) { novelty_.told(counters); }
  // The world was halted anew.
  void halted();
  // A mutant that the engine should execute; false when none waits.
  bool take(Input* out);

 private:
  static constexpr unsigned kChains = 2;
  static constexpr unsigned kChainLength = 4;
  // Mutants that wait for the engine to execute them; more are dropped, and found again.
  static constexpr size_t kMostPromising = 8;
  // Of a scenario: as many as a process finds in an hour or so.
  static constexpr size_t kMostFinds = 1024;

  void walk_chain(const Input& start);
  const Input& start_of_chain(const Input& input);
  void remember(const Input& input);

  const Mutator& mutator_;
  Guidance& guidance_;
  WalkLoop& loop_;
  Novelty novelty_;
  Input mutant_;
  std::vector<uint8_t> bytes_;
  std::vector<Input> promising_;
  std::array<std::vector<Input>, kScenarios> finds_;
};

}  // namespace framestorm
