// Changes to what a call passes: its arguments, and sequences of calls.
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/mutator_rng.h"
#include "harness/input/input.h"
#include "harness/input/walker_table.h"

namespace framestorm {

// Each gives one or two fields another value; the result may need canonicalise().
void pick_context_and_env(Rng& rng, CallArgs* call);
void pick_depth(Rng& rng, CallArgs* call);
// Bits the walker knows, at times with others.
void pick_options(const WalkerTraits& traits, Rng& rng, CallArgs* call);
// Masks that are often near what a trace has.
void pick_masks(Rng& rng, CallArgs* call);

// One change of a sequence, which has at most `most` calls afterwards and at least one.
void change_calls(size_t most, Rng& rng, std::vector<IteratorCall>* calls);
void change_calls(size_t most, Rng& rng, std::vector<QueueCall>* calls);

// The beginning of one and the end of the other.
template <typename Call>
void splice_calls(const std::vector<Call>& a, const std::vector<Call>& b, size_t most, Rng& rng,
                  std::vector<Call>* out) {
  const size_t from_a = rng.below(a.size() + 1);
  const size_t from_b = rng.below(b.size() + 1);
  out->assign(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(from_a));
  out->insert(out->end(), b.end() - static_cast<std::ptrdiff_t>(from_b), b.end());
  if (out->size() > most) {
    out->resize(most);
  }
}

}  // namespace framestorm
