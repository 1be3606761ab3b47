/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

// Hands out libjvm's own edge counters (clang's SanitizerCoverage: inline-8bit-counters, pc-table).
//
// A process has one set of global sancov callbacks, which belongs to its fuzzing engine, if it has
// any. libjvm registers nowhere: the callbacks its instrumented files call are the empty ones
// below, hidden, so that every program can load this libjvm, and a fuzzer asks
// framestorm_coverage().
//
// This file itself must not be instrumented: it is not in framestorm_walker_files.gmk.

#include "jni.h"

#include <cstdint>

#define FRAMESTORM_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// Bounds of the two sections, made by the linker when the sections exist. Weak: null otherwise.
extern uint8_t __start___sancov_cntrs[] __attribute__((weak)) FRAMESTORM_HIDDEN;
extern uint8_t __stop___sancov_cntrs[] __attribute__((weak)) FRAMESTORM_HIDDEN;
extern uintptr_t __start___sancov_pcs[] __attribute__((weak)) FRAMESTORM_HIDDEN;
extern uintptr_t __stop___sancov_pcs[] __attribute__((weak)) FRAMESTORM_HIDDEN;

// What every instrumented file calls at load.
FRAMESTORM_HIDDEN void __sanitizer_cov_8bit_counters_init(uint8_t*, uint8_t*) {}
FRAMESTORM_HIDDEN void __sanitizer_cov_pcs_init(const uintptr_t*, const uintptr_t*) {}

// The counters (one byte an edge, wrapping, not atomic; the caller may clear them) and their table:
// one pair {pc, flags} a counter, in the same order; bit 0 of flags marks a function's entry.
// All four are null in a build without coverage. The memory is libjvm's and lives as long as it.
// Any thread, any context; async-signal-safe.
JNIEXPORT void framestorm_coverage(uint8_t** counters_begin, uint8_t** counters_end,
                                   const uintptr_t** pcs_begin, const uintptr_t** pcs_end) {
  *counters_begin = __start___sancov_cntrs;
  *counters_end = __stop___sancov_cntrs;
  *pcs_begin = __start___sancov_pcs;
  *pcs_end = __stop___sancov_pcs;
}

}  // extern "C"
