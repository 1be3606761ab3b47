// What a fuzz target lets its mutator change. Each target changes its own part of an Input and
// leaves the rest at the default, so that a finding says by its target where it comes from. A target
// is a file fuzz_*.cpp that registers its profile, and a folder of seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/baseline.h"
#include "harness/input/input.h"
#include "harness/input/walker_table.h"

namespace framestorm {

// Relative weights of the steps of mutate(); the sum is free.
struct MutatorWeights {
  uint32_t add = 4;      // one more mutation
  uint32_t replace = 4;  // another value at the same place
  uint32_t tweak = 5;    // a neighbour of the value
  uint32_t move = 2;     // the same value at another place
  uint32_t remove = 2;
  uint32_t frame_switch = 2;  // pc, sp and fp together, consistent with each other
};

template <typename Enum>
std::vector<Enum> every() {
  constexpr auto kAll = all_of<Enum>();
  return {kAll.begin(), kAll.end()};
}

// Whether a walker walks in a mode: that of the table, or what a plugin declares.
using WalksIn = std::function<bool(WalkerId, Mode)>;
inline bool walks_in_by_table(WalkerId id, Mode mode) { return traits_of(id).walks_in(mode); }

struct MutatorProfile {
  std::string_view target;  // as its file: "fuzz_stack"; static storage

  bool registers = false;
  bool frame_triple_only = false;  // with registers: pc, sp and fp, no others
  bool stack_words = false;
  bool thread_fields = false;
  // Context and JNIEnv; depth, and the walker's options and masks, are every target's now and then.
  bool call_args = false;
  // Sequences of iterator calls, or of calls to queues; then these are what is mutated mostly.
  bool iterator_calls = false;
  bool queue_calls = false;
  bool has_calls() const { return iterator_calls || queue_calls; }

  // Instead of all of these.
  Baseline baseline = Baseline::none;

  MutatorWeights weights;
  // One in so many walks stays unmutated, so that the truth oracle sees real contexts.
  uint32_t unmutated_one_in = 64;
  // One in so many changes scenario or mode (where there is a choice).
  uint32_t scenario_one_in = 16;
  // One in so many gets any of the walkers: what trips one up may trip others.
  uint32_t walker_one_in = 3;
  // One in so many steps of a target without call_args draws depth, options or masks.
  uint32_t options_one_in = 12;

  // What may be produced; each non-empty. All at first, but walkers only those that can be told what
  // is mutated, and neither gst nor plugin; drivers narrow or widen the lists.
  std::vector<ScenarioId> scenarios = every<ScenarioId>();
  std::vector<Mode> modes = every<Mode>();
  std::vector<WalkerId> walkers = {kFuzzedWalkers.begin(), kFuzzedWalkers.end()};
  WalksIn walks_in = &walks_in_by_table;

  // Whether that walker, an outside one among them, reads what this target mutates.
  bool is_for(WalkerId id) const;
};

// A file of a target has one, at namespace scope.
class RegisteredTarget {
 public:
  explicit RegisteredTarget(MutatorProfile profile);
};

// Of the targets that are linked into the program. From main() on.
std::span<const MutatorProfile> mutator_profiles();

std::vector<std::string> target_names();

// nullptr when there is no such target.
const MutatorProfile* find_mutator_profile(std::string_view target);

// The name of the one target that is linked into the program.
std::string_view only_target();

}  // namespace framestorm
