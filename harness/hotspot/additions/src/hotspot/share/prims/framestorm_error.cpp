/*
 * This code is free software; you can redistribute it and/or modify it under the terms of the GNU
 * General Public License version 2 only, as published by the Free Software Foundation, with the
 * "Classpath" exception as provided in the LICENSE file that accompanies OpenJDK.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without
 * even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU
 * General Public License version 2 for more details.
 */

// A look at failing checks (assert, guarantee, fatal ...) before HotSpot reports them and dies:
// edits.toml puts a call of framestorm_on_error into the functions of debug.cpp.

#include <stdarg.h>

#include "jni.h"

typedef void (*framestorm_error_function)(const char* file, int line, const char* condition,
                                          const char* format, va_list values);

// Set by whoever wants to know; called on the thread whose check failed, possibly in a signal
// handler. It may leave by another way than by returning; when it returns HotSpot dies.
extern "C" {
JNIEXPORT framestorm_error_function framestorm_error_hook = nullptr;
}

void framestorm_on_error(const char* file, int line, const char* condition, const char* format,
                         va_list values) {
  const framestorm_error_function hook = framestorm_error_hook;
  if (hook == nullptr) return;
  va_list copy;
  va_copy(copy, values);
  hook(file, line, condition, format, copy);
  va_end(copy);
}
