// HotSpot's own checks (assert, guarantee, fatal, ShouldNotReachHere): one that fails in a walk
// ends the walk before HotSpot's error reporting begins, so that the process is none the worse for
// it.
//
// A libjvm with the additions calls a hook first (framestorm_error.cpp, from the functions of
// share/utilities/debug.cpp). Without them the walk is ended by the reporting's first printf, a
// terminal call.
#pragma once

#include <cstdarg>

namespace framestorm::vm_error {

// What libjvm's hook calls: place, condition, format and values of the message, as the macros of
// debug.hpp have them. Returns only outside of a walk. Any thread; async-signal-safe.
void on_error(const char* file, int line, const char* condition, const char* format,
              va_list values);

}  // namespace framestorm::vm_error
