// Mutated general registers of a real context: pc, sp, fp and the others.
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget({.target = "fuzz_ucontext", .registers = true});

}  // namespace framestorm
