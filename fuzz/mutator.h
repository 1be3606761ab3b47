// Structure-aware mutator and crossover of the fuzz targets. Works on decoded Inputs: it knows
// which places and values matter to a stack walker, keeps inputs small (mostly 1 to 4 mutations, no
// two of one place), and never leaves its target's profile.
#pragma once

#include <optional>

#include "fuzz/mutator_profile.h"
#include "fuzz/mutator_rng.h"
#include "fuzz/mutator_values.h"
#include "harness/input/input.h"

namespace framestorm {

class Mutator {
 public:
  // More are dropped; an Input may hold up to kMaxMutations when it comes from elsewhere.
  static constexpr size_t kMostMutations = 8;
  static constexpr size_t kMostCalls = 24;

  // `names` is borrowed and may be null (no code values then). Throws std::invalid_argument when
  // the profile allows no scenario, mode or walker, or no part to mutate.
  Mutator(MutatorProfile profile, const CodeNames* names);

  // While pinned, every Input produced has this scenario and mode, whatever the profile lists.
  void pin(ScenarioId scenario, Mode mode) { pinned_ = Pinned{scenario, mode}; }

  // Changes a legal Input into another one within the profile: parts that are not the target's, or
  // that its walker does not read, go back to their defaults, so does the halt point (the driver
  // chooses it), and one walk in profile.unmutated_one_in has no mutation at all (but maybe options
  // and iterator calls, which leave a real context real). The result is legal; the same seed and
  // the same names give the same result. One thread at a time; not async-signal-safe.
  void mutate(Input* input, Rng& rng) const;

  // Mixes two legal Inputs into *out, which is neither of them. Within the profile, as mutate().
  void crossover(const Input& a, const Input& b, Input* out, Rng& rng) const;

 private:
  struct Pinned {
    ScenarioId scenario;
    Mode mode;
  };

  bool allows(const Mutation& mutation) const;
  bool has_mutations() const;
  void conform(Input* input, Rng& rng) const;
  void change_scenario(Input* input, Rng& rng) const;
  void step(Input* input, Rng& rng) const;
  void step_call(Input* input, Rng& rng) const;
  bool is_changed(const Input& input) const;
  WalkerId pick_walker(Mode mode, Rng& rng) const;
  void add(Input* input, Rng& rng) const;
  void move(Input* input, Mutation* mutation, Rng& rng) const;
  void frame_switch(Input* input, Rng& rng) const;
  void pick_place(Mutation* mutation, Rng& rng) const;
  void trim(Input* input, Rng& rng) const;

  MutatorProfile profile_;
  const CodeNames* names_;
  std::optional<Pinned> pinned_;
  uint64_t scenarios_ = 0;  // one bit for each allowed one
  uint64_t modes_ = 0;
  uint64_t walkers_ = 0;
};

}  // namespace framestorm
