// Changes to what a call passes: its arguments, and sequences of iterator calls.
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
void change_iterator_calls(size_t most, Rng& rng, std::vector<IteratorCall>* calls);
// The beginning of one and the end of the other.
void splice_iterator_calls(const std::vector<IteratorCall>& a, const std::vector<IteratorCall>& b,
                           size_t most, Rng& rng, std::vector<IteratorCall>* out);

}  // namespace framestorm
