// Published ways to test a stack walker, which the mutator is measured against (`framestorm detect`).
#pragma once

#include <cstdint>

#include "fuzz/mutator_rng.h"
#include "harness/input/input.h"

namespace framestorm {

enum class Baseline : uint8_t {
  none,
  // sp and fp of a real context, each some bytes off, as in the tests that JEP 435 came with.
  offsets,
  // One pointer that a walk starts to read from, or finds on the stack, leads to an unreadable page:
  // java-profiler's injection of faults (faultInjection.h), which does it to a read in a hundred to ten thousand.
  faulty_reads,
};

// Any thread. Nothing of the input but its mutations and call arguments changes. `baseline` is not none.
void mutate_by(Baseline baseline, Input* input, Rng& rng);

}  // namespace framestorm
