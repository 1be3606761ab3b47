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

#ifndef SHARE_PRIMS_ASYNCUNWINDEXPRESSION_HPP
#define SHARE_PRIMS_ASYNCUNWINDEXPRESSION_HPP

#include "prims/asyncUnwindCpu.hpp"
#include "prims/asyncUnwindReader.hpp"
#include "prims/asyncUnwindTables.hpp"

#include <stdint.h>

#ifdef HAVE_ASYNC_UNWIND_CPU

// The part of DWARF expressions that compilers and libc use for frames: arithmetic on sp, fp and pc
// (linkers' PLTs), loads from the stack (signal trampolines, realigned stacks). No branches.
class AsyncUnwindExpression {
  static const int max_operands = 16;

  const AsyncRegisters& _registers;
  const AsyncUnwindStack& _stack;
  uintptr_t _operands[max_operands];
  int _depth;
  bool _failed;

  void push(uintptr_t value) {
    if (_depth == max_operands) {
      _failed = true;
    } else {
      _operands[_depth++] = value;
    }
  }

  uintptr_t pop() {
    if (_depth == 0) {
      _failed = true;
      return 0;
    }
    return _operands[--_depth];
  }

  void push_register(uint64_t number, uintptr_t offset) {
    switch (number) {
      case AsyncUnwindCpu::fp_register:
        push(_registers.fp + offset);
        break;
      case AsyncUnwindCpu::sp_register:
        push(_registers.sp + offset);
        break;
      case AsyncUnwindCpu::return_register:
        push(_registers.pc + offset);
        break;
      default:
        _failed = true;
        break;
    }
  }

  void execute(AsyncUnwindReader* reader);
  void execute_binary(uint8_t code);

 public:
  AsyncUnwindExpression(const AsyncRegisters& registers, const AsyncUnwindStack& stack)
      : _registers(registers), _stack(stack), _depth(0), _failed(false) {}

  // False when it is malformed or asks for what a walk does not have. `initial` is on the operand
  // stack from the start, unless null.
  bool evaluate(uintptr_t begin, uintptr_t end, const uintptr_t* initial, uintptr_t* result);
};

#endif  // HAVE_ASYNC_UNWIND_CPU

#endif  // SHARE_PRIMS_ASYNCUNWINDEXPRESSION_HPP
