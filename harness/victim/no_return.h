// A chain of C frames that a walk which begins at one of them can take for something else: each ends
// in its call, and the next byte is another function's, whose frame has another size. Only the bytes
// before such a pc, and the words on the stack, tell whether it is a return address or was interrupted.
#pragma once

#include <cstdint>

namespace framestorm {

// Counts `rounds` down at a function's first byte, below all of them. Any thread.
void count_below_no_return(uint64_t rounds);

}  // namespace framestorm
