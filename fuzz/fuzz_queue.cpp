// Sequences of calls to safepoint queues, each checked against a plain model
// (harness/walkers/queue_sequence.h).
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget(
    {.target = "fuzz_queue", .registers = true, .frame_triple_only = true, .queue_calls = true});

}  // namespace framestorm
