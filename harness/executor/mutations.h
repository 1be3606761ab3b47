// Puts an input's mutations into effect on its halted victim.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <vector>

#include "harness/executor/address_space.h"
#include "harness/input/input.h"
#include "harness/jvm/vm_structs.h"
#include "harness/victim/undo_log.h"
#include "harness/victim/victims.h"

namespace framestorm {

struct AppliedMutations {
  size_t applied = 0;
  size_t unresolved = 0;  // unknown code, an address off the stack
};

// `registers`: the victim's, which are changed; what is changed in its memory is noted in `undo`.
// `halted`: all victims, whose places values may name. World halted.
AppliedMutations apply_mutations(const Input& input, const Victim& victim,
                                 const std::vector<Victim*>& halted, const AddressSpace& addresses,
                                 const ThreadLayout& layout, ucontext_t* registers, UndoLog* undo);

}  // namespace framestorm
