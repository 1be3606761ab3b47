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

#ifndef SHARE_PRIMS_ASYNCUNWINDPROGRAM_HPP
#define SHARE_PRIMS_ASYNCUNWINDPROGRAM_HPP

#include "prims/asyncUnwindCpu.hpp"
#include "prims/asyncUnwindReader.hpp"

#include <stdint.h>

#ifdef HAVE_ASYNC_UNWIND_CPU

// What the FDEs of some functions have in common.
struct AsyncUnwindCie {
  uint64_t code_alignment;
  uint64_t data_alignment;
  uint64_t return_register;
  uint8_t pointer_encoding;  // of the FDEs
  bool has_augmentation;
  bool is_signal_frame;
  uintptr_t program;
  uintptr_t program_end;

  // False when it is malformed or of an unknown kind. Nothing is read outside [address, high).
  bool read(uintptr_t address, uintptr_t high);
};

// The unwind table of one function, with its CIE.
struct AsyncUnwindFde {
  AsyncUnwindCie cie;
  uintptr_t start;  // of the code
  uintptr_t size;
  uintptr_t program;
  uintptr_t program_end;

  // The same. The table and its CIE have to be in [low, high).
  bool read(uintptr_t address, uintptr_t low, uintptr_t high);

  bool covers(uintptr_t pc) const { return pc >= start && pc - start < size; }
};

// How a register's value in the caller is found.
struct AsyncUnwindRule {
  enum Kind : uint8_t {
    unspecified,
    undefined,
    same_value,
    at_offset,         // at CFA + offset
    value_offset,      // is CFA + offset
    at_expression,     // at the expression's value
    value_expression,  // is the expression's value
    unsupported
  };
  Kind kind;
  uintptr_t offset;  // or where the expression is
  uintptr_t expression_end;
};

struct AsyncUnwindRow {
  enum Register { fp, sp, return_address, registers };
  enum CfaKind : uint8_t { cfa_unset, cfa_register, cfa_expression };

  CfaKind cfa_kind;
  uint64_t cfa_base;  // register, or where the expression is
  uintptr_t cfa_offset;
  uintptr_t cfa_expression_end;
  AsyncUnwindRule rules[registers];
};

// Runs the instructions of a CIE and then those of an FDE, up to the row that a pc is in.
class AsyncUnwindProgram {
  static const int max_remembered = 8;

  const AsyncUnwindCie& _cie;
  const uintptr_t _pc;
  uintptr_t _location;
  AsyncUnwindRow _row;
  AsyncUnwindRow _initial;
  bool _in_cie;
  AsyncUnwindRow _remembered[max_remembered];
  int _remembered_count;
  int _instructions;

  // Null for a register that is not followed.
  AsyncUnwindRule* rule_of(uint64_t number) {
    if (number == AsyncUnwindCpu::fp_register) return &_row.rules[AsyncUnwindRow::fp];
    if (number == AsyncUnwindCpu::sp_register) return &_row.rules[AsyncUnwindRow::sp];
    if (number == _cie.return_register) return &_row.rules[AsyncUnwindRow::return_address];
    return nullptr;
  }

  void set(uint64_t number, AsyncUnwindRule::Kind kind, uintptr_t offset = 0,
           uintptr_t expression_end = 0) {
    AsyncUnwindRule* const rule = rule_of(number);
    if (rule != nullptr) {
      rule->kind = kind;
      rule->offset = offset;
      rule->expression_end = expression_end;
    }
  }

  bool restore(uint64_t number) {
    if (_in_cie) return false;
    AsyncUnwindRule* const rule = rule_of(number);
    if (rule != nullptr) {
      *rule = _initial.rules[rule - _row.rules];
    }
    return true;
  }

  void set_cfa(uint64_t base, uintptr_t offset) {
    _row.cfa_kind = AsyncUnwindRow::cfa_register;
    _row.cfa_base = base;
    _row.cfa_offset = offset;
  }

  bool set_cfa_offset(uintptr_t offset) {
    _row.cfa_offset = offset;
    return _row.cfa_kind == AsyncUnwindRow::cfa_register;
  }

  void set_expression(AsyncUnwindReader* reader, uint64_t number, AsyncUnwindRule::Kind kind) {
    const uint64_t length = reader->uleb();
    const uintptr_t begin = reader->position();
    reader->skip(length);
    set(number, kind, begin, reader->position());
  }

  // False when the row that begins at the new location is behind pc.
  bool advance(uint64_t distance) {
    const uint64_t bytes = distance * _cie.code_alignment;
    if (bytes > _pc - _location) return false;
    _location += bytes;
    return true;
  }

  enum class Next { go_on, complete, unsupported };

  static Next go_on_if(bool ok) { return ok ? Next::go_on : Next::unsupported; }
  static Next complete_unless(bool ok) { return ok ? Next::go_on : Next::complete; }

  Next execute(AsyncUnwindReader* reader);
  bool run(uintptr_t begin, uintptr_t end);

 public:
  AsyncUnwindProgram(const AsyncUnwindFde& fde, uintptr_t pc)
      : _cie(fde.cie),
        _pc(pc),
        _location(fde.start),
        _row(),
        _initial(),
        _in_cie(true),
        _remembered_count(0),
        _instructions(0) {}

  // False when the tables are malformed or unsupported.
  bool run(const AsyncUnwindFde& fde) {
    if (!run(_cie.program, _cie.program_end)) return false;
    _initial = _row;
    _in_cie = false;
    return run(fde.program, fde.program_end);
  }

  const AsyncUnwindRow& row() const { return _row; }
};

#endif  // HAVE_ASYNC_UNWIND_CPU

#endif  // SHARE_PRIMS_ASYNCUNWINDPROGRAM_HPP
