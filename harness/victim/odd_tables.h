// Code whose unwind tables are right and unusual: compilers make no such ones, hand-written assembly, signal
// trampolines and dynamic loaders do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

// Calls `function` by way of kOddlyTabled such functions, each called by the one before. Any thread.
void call_oddly_tabled(void (*function)());
inline constexpr size_t kOddlyTabled = 11;

// Whether `pc` is in one of them. Async-signal-safe.
bool is_oddly_tabled(uintptr_t pc);

}  // namespace framestorm
