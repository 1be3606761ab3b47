// sp/fp/pc triples in a real context: every other register is the victim's.
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget({.target = "fuzz_frame",
                                .registers = true,
                                .frame_triple_only = true,
                                .weights = {.frame_switch = 6}});

}  // namespace framestorm
