// From the functions that failed checks call to the walk's reports. Private to the guard.
#pragma once

#include <cstddef>
#include <cstdint>

namespace framestorm {

// A check of ASan's that failed: true when it was a walk's and is recorded; with `ends` the walk
// ends there, and this does not return. `pc`, `frame`: as for sanitizer::on_ubsan.
// Async-signal-safe.
bool record_asan_check(uintptr_t address, size_t size, bool is_write, bool ends, const void* pc,
                       const void* frame);

}  // namespace framestorm
