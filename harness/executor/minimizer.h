// Shrinks an input while its finding stays the same, at the halt point the world is at: first every
// field back to its unmutated value, then what is left towards simpler values.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/input/input.h"

namespace framestorm {

// `still_fails(candidate)` executes the candidate and says whether the finding came back. Calls it
// at most `budget` times. Returns the smallest input that still failed (at worst `input` itself).
Input minimize(const Input& input, const std::function<bool(const Input&)>& still_fails,
               uint32_t budget);

}  // namespace framestorm
