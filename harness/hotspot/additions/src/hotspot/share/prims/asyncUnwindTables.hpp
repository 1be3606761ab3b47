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

#ifndef SHARE_PRIMS_ASYNCUNWINDTABLES_HPP
#define SHARE_PRIMS_ASYNCUNWINDTABLES_HPP

#include "memory/allStatic.hpp"

#include <stdint.h>

struct AsyncRegisters {
  uintptr_t pc;
  uintptr_t sp;
  uintptr_t fp;  // the frame pointer register, whatever the code uses it for
};

// Unwinding of C/C++ frames by their unwind tables (.eh_frame), for code without frame pointers and
// for pcs where a frame is not complete.
//
// The tables are found through glibc's _dl_find_object (2.35 and later); without it there are none.
// Tables, registers and the stack may hold anything: every load is a SafeFetch, the tables' within
// the object they belong to, the stack's within the bounds given.
//
// Any thread, any context; async-signal-safe. Bounded, allocates nothing, takes no lock.
class AsyncUnwindTables : AllStatic {
 public:
  enum class Step {
    stepped,                 // *registers are the caller's; pc is a return address
    stepped_to_interrupted,  // the frame was a signal handler's trampoline: pc is where the signal
                             // came, so that the next step is one with `interrupted`
    end,                     // the outermost frame: there is no caller
    no_table,                // no object, or no table entry for pc
    unsupported,             // the table asks for more than sp and fp, or is malformed
    bad_stack                // what the table says leaves [low, high), or does not go up
  };

  // From a frame to its caller. `interrupted`: pc is where the thread was interrupted, and no
  // return address. The stack is read in [low, high) only; the new sp is above the old one, a
  // multiple of the word size, and not above high. *registers change only when it stepped.
  static Step step(AsyncRegisters* registers, bool interrupted, uintptr_t low, uintptr_t high);

  // Is pc in an executable segment of a loaded object?
  static bool is_code(uintptr_t pc);
};

#endif  // SHARE_PRIMS_ASYNCUNWINDTABLES_HPP
