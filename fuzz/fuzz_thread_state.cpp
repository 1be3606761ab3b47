// Mutated JavaThread: thread state and the last-Java-frame anchor.
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget({.target = "fuzz_thread_state", .thread_fields = true});

}  // namespace framestorm
