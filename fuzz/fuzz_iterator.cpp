// Sequences of calls to the iterator API, each checked against a plain model
// (harness/walkers/iterator_sequence.h).
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget({.target = "fuzz_iterator",
                                .registers = true,
                                .frame_triple_only = true,
                                .iterator_calls = true});

}  // namespace framestorm
