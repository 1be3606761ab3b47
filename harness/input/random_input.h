// Random legal Inputs for tests: every field takes every value with a fair share of extremes.
#pragma once

#include <random>

#include "harness/input/input.h"

namespace framestorm {

using TestRng = std::mt19937_64;

Input random_input(TestRng& rng);
Mutation random_mutation(TestRng& rng);

}  // namespace framestorm
