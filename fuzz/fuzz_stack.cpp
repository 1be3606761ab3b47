// Mutated words of the victim's stack: return addresses, saved frame pointers, interpreter frame
// slots.
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget({.target = "fuzz_stack", .stack_words = true});

}  // namespace framestorm
