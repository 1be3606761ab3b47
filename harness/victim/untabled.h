// Code without an unwind table that keeps a frame pointer, as assembly written by hand and code that
// other runtimes make often does.
#pragma once

#include <cstdint>

namespace framestorm {

// Calls `function` from such code. Any thread.
void call_untabled(void (*function)());

// Whether `pc` is in it. Async-signal-safe.
bool is_untabled(uintptr_t pc);

// What unwinders that go by DWARF call the frame pointer.
extern const int kDwarfFramePointer;

}  // namespace framestorm
