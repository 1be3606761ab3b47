// Finds out what an abandoned walk of AsyncGetCallTrace leaves in the thread that it walked.
#pragma once

#include "harness/jvm/jvm.h"
#include "harness/jvm/walk_residue.h"

namespace framestorm::stress {

// Abandons a walk of a thread of its own that is made to fault, and looks at what is different. The
// guard is installed, the VM runs. Not in signal context.
WalkResidue learn_residue(Jvm& jvm);

}  // namespace framestorm::stress
