// What one timer signal costs a thread on this machine, without what its handler does: the timer's
// interrupt, entering and leaving the handler.
#pragma once

#include <cstdint>

namespace framestorm::stress {

// Measured on the calling thread in a few milliseconds, with `signo`, whose action it restores.
// Nanoseconds; 0 when it could not be measured. Not in signal context.
uint64_t measure_delivery(int signo);

}  // namespace framestorm::stress
