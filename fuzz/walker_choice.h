// Which walkers a target's inputs are given to.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "fuzz/mutator_profile.h"
#include "harness/input/input.h"

namespace framestorm {

class WalkerChoice {
 public:
  // The walkers of `wanted` or, when it is empty, those of `usable` that are not missing; and those
  // of `modes` that any of them walks in. `missing` says why. Throws SetupError when a wanted
  // walker is missing, or no walker or no mode is left. `declared`: in which modes a walker walks;
  // by default as the table says.
  WalkerChoice(std::span<const WalkerId> wanted, std::span<const WalkerId> usable,
               const std::map<WalkerId, std::string>& missing, std::span<const Mode> modes,
               WalksIn declared = &walks_in_by_table);

  const std::vector<WalkerId>& walkers() const { return walkers_; }
  const std::vector<Mode>& modes() const { return modes_; }
  // Of walkers(), those that walk in it.
  std::vector<WalkerId> walkers_in(Mode mode) const;

  // Gives the input another walker when its own is not one of them, or not in its mode: the same
  // one whenever it is asked. True when it did. The input's mode has to be one of modes().
  bool choose(Input* input) const;

 private:
  bool fits(WalkerId id, Mode mode) const;

  WalksIn walks_in_;
  std::vector<WalkerId> walkers_;
  std::vector<Mode> modes_;
};

}  // namespace framestorm
