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

#ifndef CPU_X86_ASYNCUNWINDTABLES_X86_HPP
#define CPU_X86_ASYNCUNWINDTABLES_X86_HPP

#include "memory/allStatic.hpp"
#include "prims/asyncUnwindReader.hpp"

#include <stdint.h>

// What asyncUnwindTables_linux.cpp needs to know of a CPU: DWARF's numbers of the registers a walk
// carries (System V ABI, AMD64 supplement, figure 3.36).
//
// A CPU whose return address can be in a register besides (AArch64: x30) also needs that register
// in AsyncRegisters, and the place where pointer authentication is stripped.
class AsyncUnwindCpu : AllStatic {
 public:
  enum : uint64_t {
    fp_register = 6,      // rbp
    sp_register = 7,      // rsp
    return_register = 16  // rip, also where an expression asks for the pc
  };

  // An entry of a procedure linkage table that the linker wrote no unwind table for (lld does not):
  // jmp *address(%rip), perhaps behind endbr64. The frame is the return address then. Not so in the
  // first entry, behind pushq address(%rip), nor in what binds a function at its first call.
  // `code` starts six bytes before the pc.
  static bool is_linkage_jump(AsyncUnwindReader* code) {
    const uint16_t before = code->u2();
    code->skip(4);
    uint16_t instruction = code->u2();
    if (instruction == 0x0ff3 && code->u2() == 0xfa1e) {  // endbr64
      instruction = code->u2();
    } else if (before == 0x35ff) {
      return false;
    }
    return instruction == 0x25ff && !code->failed();
  }
};

#endif  // CPU_X86_ASYNCUNWINDTABLES_X86_HPP
