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

#include "prims/asyncUnwindProgram.hpp"

#ifdef HAVE_ASYNC_UNWIND_CPU

// The formats: Linux Standard Base Core 5.0, chapter 10.6 (.eh_frame), and DWARF 5, chapter 6.4
// (call frame information).

namespace {

constexpr int kMaxInstructions = 1 << 16;  // of a CIE and an FDE; the largest seen have 1200

}  // namespace

bool AsyncUnwindCie::read(uintptr_t address, uintptr_t high) {
  constexpr int kMaxAugmentation = 8;
  AsyncUnwindReader reader(address, high);
  const uint32_t length = reader.u4();
  if (length == UINT32_MAX) return false;  // 64-bit DWARF
  reader.limit(length);
  if (reader.u4() != 0) return false;  // an FDE
  const uint8_t version = reader.u1();
  if (version != 1 && version != 3) return false;

  char augmentation[kMaxAugmentation + 1];
  int letters = 0;
  while ((augmentation[letters] = char(reader.u1())) != 0) {
    if (++letters > kMaxAugmentation) return false;
  }
  code_alignment = reader.uleb();
  data_alignment = reader.sleb();
  return_register = version == 1 ? reader.u1() : reader.uleb();
  pointer_encoding = AsyncUnwindReader::absolute;
  has_augmentation = letters > 0;
  is_signal_frame = false;

  if (letters > 0) {
    if (augmentation[0] != 'z') return false;
    const uint64_t data_length = reader.uleb();
    const uintptr_t data = reader.position();
    for (int i = 1; i < letters; i++) {
      switch (augmentation[i]) {
        case 'L':
          reader.u1();
          break;
        case 'P':
          reader.value_of_format(reader.u1());
          break;
        case 'R':
          pointer_encoding = reader.u1();
          break;
        case 'S':
          is_signal_frame = true;
          break;
        default:
          return false;
      }
    }
    const uint64_t data_read = reader.position() - data;
    if (reader.failed() || data_read > data_length) return false;
    reader.skip(data_length - data_read);
  }
  program = reader.position();
  program_end = reader.end();
  return !reader.failed();
}

bool AsyncUnwindFde::read(uintptr_t address, uintptr_t low, uintptr_t high) {
  AsyncUnwindReader reader(address, high);
  const uint32_t length = reader.u4();
  if (length == UINT32_MAX) return false;
  reader.limit(length);
  const uintptr_t cie_field = reader.position();
  const uint32_t cie_distance = reader.u4();
  if (reader.failed() || cie_distance == 0 || cie_distance > cie_field - low) return false;
  if (!cie.read(cie_field - cie_distance, high)) return false;
  if ((cie.pointer_encoding & AsyncUnwindReader::indirect) != 0) return false;
  start = reader.encoded_pointer(cie.pointer_encoding);
  size = reader.value_of_format(cie.pointer_encoding);
  if (cie.has_augmentation) {
    reader.skip(reader.uleb());
  }
  program = reader.position();
  program_end = reader.end();
  return !reader.failed();
}

bool AsyncUnwindProgram::run(uintptr_t begin, uintptr_t end) {
  AsyncUnwindReader reader(begin, end);
  while (!reader.at_end()) {
    if (++_instructions > kMaxInstructions) return false;
    switch (execute(&reader)) {
      case Next::go_on:
        break;
      case Next::complete:
        return !reader.failed();
      case Next::unsupported:
        return false;
    }
  }
  return !reader.failed();
}

AsyncUnwindProgram::Next AsyncUnwindProgram::execute(AsyncUnwindReader* reader) {
  const uint8_t code = reader->u1();
  const uint8_t low_bits = code & 0x3f;
  switch (code & 0xc0) {
    case 0x40:
      return complete_unless(advance(low_bits));
    case 0x80:
      set(low_bits, AsyncUnwindRule::at_offset, reader->uleb() * _cie.data_alignment);
      return Next::go_on;
    case 0xc0:
      return go_on_if(restore(low_bits));
    default:
      break;
  }
  uint64_t number = 0;
  switch (code) {
    case 0x00:
      return Next::go_on;  // nop
    case 0x01: {           // set_loc
      const uintptr_t location = reader->encoded_pointer(_cie.pointer_encoding);
      if (location > _pc) return Next::complete;
      _location = location;
      return Next::go_on;
    }
    case 0x02:
      return complete_unless(advance(reader->u1()));
    case 0x03:
      return complete_unless(advance(reader->u2()));
    case 0x04:
      return complete_unless(advance(reader->u4()));
    case 0x05:  // offset_extended
      number = reader->uleb();
      set(number, AsyncUnwindRule::at_offset, reader->uleb() * _cie.data_alignment);
      return Next::go_on;
    case 0x06:
      return go_on_if(restore(reader->uleb()));
    case 0x07:
      set(reader->uleb(), AsyncUnwindRule::undefined);
      return Next::go_on;
    case 0x08:
      set(reader->uleb(), AsyncUnwindRule::same_value);
      return Next::go_on;
    case 0x09:  // register
      set(reader->uleb(), AsyncUnwindRule::unsupported);
      reader->uleb();
      return Next::go_on;
    case 0x0a:  // remember_state
      if (_remembered_count == max_remembered) return Next::unsupported;
      _remembered[_remembered_count++] = _row;
      return Next::go_on;
    case 0x0b:  // restore_state
      if (_remembered_count == 0) return Next::unsupported;
      _row = _remembered[--_remembered_count];
      return Next::go_on;
    case 0x0c:  // def_cfa
      number = reader->uleb();
      set_cfa(number, reader->uleb());
      return Next::go_on;
    case 0x0d:  // def_cfa_register
      _row.cfa_base = reader->uleb();
      return go_on_if(_row.cfa_kind == AsyncUnwindRow::cfa_register);
    case 0x0e:
      return go_on_if(set_cfa_offset(reader->uleb()));
    case 0x0f: {  // def_cfa_expression
      const uint64_t length = reader->uleb();
      _row.cfa_kind = AsyncUnwindRow::cfa_expression;
      _row.cfa_base = reader->position();
      reader->skip(length);
      _row.cfa_expression_end = reader->position();
      return Next::go_on;
    }
    case 0x10:
      set_expression(reader, reader->uleb(), AsyncUnwindRule::at_expression);
      return Next::go_on;
    case 0x11:  // offset_extended_sf
      number = reader->uleb();
      set(number, AsyncUnwindRule::at_offset, reader->sleb() * _cie.data_alignment);
      return Next::go_on;
    case 0x12:  // def_cfa_sf
      number = reader->uleb();
      set_cfa(number, reader->sleb() * _cie.data_alignment);
      return Next::go_on;
    case 0x13:
      return go_on_if(set_cfa_offset(reader->sleb() * _cie.data_alignment));
    case 0x14:  // val_offset
      number = reader->uleb();
      set(number, AsyncUnwindRule::value_offset, reader->uleb() * _cie.data_alignment);
      return Next::go_on;
    case 0x15:  // val_offset_sf
      number = reader->uleb();
      set(number, AsyncUnwindRule::value_offset, reader->sleb() * _cie.data_alignment);
      return Next::go_on;
    case 0x16:
      set_expression(reader, reader->uleb(), AsyncUnwindRule::value_expression);
      return Next::go_on;
    case 0x2e:
      reader->uleb();
      return Next::go_on;  // GNU_args_size
    case 0x2f:             // GNU_negative_offset_extended
      number = reader->uleb();
      set(number, AsyncUnwindRule::at_offset, 0 - reader->uleb() * _cie.data_alignment);
      return Next::go_on;
    default:
      return Next::unsupported;
  }
}

#endif  // HAVE_ASYNC_UNWIND_CPU
