/*
 * This code is free software; you can redistribute it and/or modify it under the terms of the GNU
 * General Public License version 2 only, as published by the Free Software Foundation, with the
 * "Classpath" exception as provided in the LICENSE file that accompanies OpenJDK.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without
 * even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU
 * General Public License version 2 for more details.
 */

// The functions that code compiled with -fsanitize=undefined calls, for libjvm only (hidden).
// Clang's own runtime reports a place once per process, under a lock and with stdio: of no use for
// a walk that is repeated, in a signal handler. These call a hook each time, or print a place once.
//
// Layout of the data they get: compiler-rt/lib/ubsan/ubsan_handlers.h. A build without UBSan has
// them, unused.

#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <atomic>

#include "jni.h"

typedef void (*framestorm_ubsan_function)(const char* check, const char* file, uint32_t line,
                                          uint32_t column, const void* pc, const void* frame);

// Set by whoever wants the reports; called on the thread that made one, possibly in a signal
// handler. `pc`: behind the check; `frame`: of the handler that was called there.
extern "C" {
JNIEXPORT framestorm_ubsan_function framestorm_ubsan_hook = nullptr;
}

namespace {

struct Location {
  const char* file;
  uint32_t line;
  uint32_t column;
};

struct TypeMismatch {
  Location location;
  const void* type;
  uint8_t log_alignment;
  uint8_t kind;
};

// Places printed already: enough for what a JVM does by habit.
const int kPlaces = 256;
std::atomic<const Location*> printed[kPlaces];

bool is_first(const Location* location) {
  for (int i = 0; i < kPlaces; ++i) {
    const Location* expected = nullptr;
    if (printed[i].compare_exchange_strong(expected, location)) return true;
    if (expected == location) return false;
  }
  return false;
}

void print(const char* text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

void print_number(uint32_t value) {
  char digits[11];
  char* at = digits + sizeof digits - 1;
  *at = '\0';
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  print(at);
}

void report(const char* check, const Location* location, const void* pc, const void* frame) {
  const framestorm_ubsan_function hook = framestorm_ubsan_hook;
  if (hook != nullptr) {
    hook(check, location->file, location->line, location->column, pc, frame);
  } else if (is_first(location)) {
    print(location->file);
    print(":");
    print_number(location->line);
    print(":");
    print_number(location->column);
    print(": runtime error: ");
    print(check);
    print("\n");
  }
}

const char* type_check(const TypeMismatch* data, uintptr_t pointer) {
  if (pointer == 0) return "null-pointer-use";
  const uintptr_t mask = (static_cast<uintptr_t>(1) << data->log_alignment) - 1;
  return (pointer & mask) != 0 ? "misaligned-pointer-use" : "insufficient-object-size";
}

}  // namespace

#define FRAMESTORM_REPORT(check, location)                                           \
  report(check, static_cast<const Location*>(location), __builtin_return_address(0), \
         __builtin_frame_address(0))

#define FRAMESTORM_HANDLER(name, check, parameters)                                    \
  extern "C" void __ubsan_handle_##name parameters { FRAMESTORM_REPORT(check, data); } \
  extern "C" void __ubsan_handle_##name##_abort parameters {                           \
    FRAMESTORM_REPORT(check, data);                                                    \
    __builtin_trap();                                                                  \
  }

#define FRAMESTORM_ONE (void* data)
#define FRAMESTORM_TWO (void* data, uintptr_t)
#define FRAMESTORM_THREE (void* data, uintptr_t, uintptr_t)

extern "C" void __ubsan_handle_type_mismatch_v1(void* data, uintptr_t pointer) {
  FRAMESTORM_REPORT(type_check(static_cast<TypeMismatch*>(data), pointer), data);
}
extern "C" void __ubsan_handle_type_mismatch_v1_abort(void* data, uintptr_t pointer) {
  FRAMESTORM_REPORT(type_check(static_cast<TypeMismatch*>(data), pointer), data);
  __builtin_trap();
}

FRAMESTORM_HANDLER(alignment_assumption, "alignment-assumption",
                   (void* data, uintptr_t, uintptr_t, uintptr_t))
FRAMESTORM_HANDLER(add_overflow, "signed-integer-overflow", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(sub_overflow, "signed-integer-overflow", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(mul_overflow, "signed-integer-overflow", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(negate_overflow, "negation-overflow", FRAMESTORM_TWO)
FRAMESTORM_HANDLER(divrem_overflow, "division-overflow", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(shift_out_of_bounds, "shift-out-of-bounds", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(out_of_bounds, "index-out-of-bounds", FRAMESTORM_TWO)
FRAMESTORM_HANDLER(vla_bound_not_positive, "vla-bound-not-positive", FRAMESTORM_TWO)
FRAMESTORM_HANDLER(float_cast_overflow, "float-cast-overflow", FRAMESTORM_TWO)
FRAMESTORM_HANDLER(load_invalid_value, "invalid-value-load", FRAMESTORM_TWO)
FRAMESTORM_HANDLER(implicit_conversion, "implicit-conversion", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(invalid_builtin, "invalid-builtin-use", FRAMESTORM_ONE)
FRAMESTORM_HANDLER(nonnull_arg, "invalid-null-argument", FRAMESTORM_ONE)
FRAMESTORM_HANDLER(nullability_arg, "invalid-null-argument", FRAMESTORM_ONE)
FRAMESTORM_HANDLER(pointer_overflow, "pointer-overflow", FRAMESTORM_THREE)
FRAMESTORM_HANDLER(function_type_mismatch, "function-type-mismatch", FRAMESTORM_TWO)

#define FRAMESTORM_RETURN_HANDLER(name)                                  \
  extern "C" void __ubsan_handle_##name(void*, void* location) {         \
    FRAMESTORM_REPORT("invalid-null-return", location);                  \
  }                                                                      \
  extern "C" void __ubsan_handle_##name##_abort(void*, void* location) { \
    FRAMESTORM_REPORT("invalid-null-return", location);                  \
    __builtin_trap();                                                    \
  }

FRAMESTORM_RETURN_HANDLER(nonnull_return_v1)
FRAMESTORM_RETURN_HANDLER(nullability_return_v1)

// Nothing sensible follows these two.
extern "C" void __ubsan_handle_builtin_unreachable(void* data) {
  FRAMESTORM_REPORT("unreachable-call", data);
  __builtin_trap();
}
extern "C" void __ubsan_handle_missing_return(void* data) {
  FRAMESTORM_REPORT("missing-return", data);
  __builtin_trap();
}
