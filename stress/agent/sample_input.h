// A sample as an input of the fuzzers: the scenario whose victims stand most alike, and what is
// different here as mutations, as far as that can be said symbolically (harness/input). Where code
// is of the sampled program itself, the scenario's own stays.
#pragma once

#include <span>

#include "harness/input/input.h"
#include "harness/jvm/code_map.h"
#include "stress/agent/options.h"
#include "stress/agent/sample.h"

namespace framestorm::stress {

// `stack`: from sp up. Not async-signal-safe.
Input input_of(const Sample& sample, std::span<const std::byte> stack, const CodeMap& code,
               SamplingMode mode);

}  // namespace framestorm::stress
