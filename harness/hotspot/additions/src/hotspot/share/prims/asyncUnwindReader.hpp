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

#ifndef SHARE_PRIMS_ASYNCUNWINDREADER_HPP
#define SHARE_PRIMS_ASYNCUNWINDREADER_HPP

#include "runtime/safefetch.hpp"

#include <stdint.h>

// Reads what lies in [begin, end), little-endian. After the first byte that is not there all is
// zero and failed() holds, until the end of its life.
class AsyncUnwindReader {
 public:
  // Pointer encodings (DW_EH_PE_*).
  enum Encoding : uint8_t {
    omitted = 0xff,
    indirect = 0x80,
    format_mask = 0x0f,
    absolute = 0x00,
    pc_relative = 0x10,
    data_relative = 0x30,
    unsigned4 = 0x03,
    signed4 = 0x0b
  };

  // A word, wherever it is. False when it cannot be read.
  static bool load(uintptr_t address, uintptr_t* value) {
    intptr_t* const place = reinterpret_cast<intptr_t*>(address);
    intptr_t word = SafeFetchN(place, 1);
    if (word == 1) {
      word = SafeFetchN(place, 2);
      if (word == 2) return false;
    }
    *value = static_cast<uintptr_t>(word);
    return true;
  }

 private:
  uintptr_t _position;
  uintptr_t _end;
  uintptr_t _word_address;
  uintptr_t _word;
  bool _failed;

  void fail() {
    _failed = true;
    _position = _end;
  }

  // The word that the next byte is in is in _word. False when there is no next byte.
  bool fetch() {
    const uintptr_t address = _position - _position % sizeof(uintptr_t);
    if (_failed || at_end()) {
      fail();
      return false;
    }
    if (_word_address != address) {
      _word_address = address;
      if (!load(address, &_word)) {
        fail();
        return false;
      }
    }
    return true;
  }

  uint64_t bytes(unsigned count) {
    const uintptr_t offset = _position % sizeof(uintptr_t);
    if (offset + count <= sizeof(uintptr_t) && !at_end() && _end - _position >= count) {
      if (!fetch()) return 0;
      _position += count;
      const uint64_t value = _word >> (8 * offset);
      return count == sizeof(uintptr_t) ? value : value & ((uint64_t(1) << (8 * count)) - 1);
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < count; i++) {
      value |= uint64_t(u1()) << (8 * i);
    }
    return value;
  }

  static uint64_t sign_extended(uint64_t value, int bits) {
    const uint64_t sign = uint64_t(1) << (bits - 1);
    return (value ^ sign) - sign;
  }

 public:
  AsyncUnwindReader(uintptr_t begin, uintptr_t end)
      : _position(begin), _end(end), _word_address(1), _word(0), _failed(begin > end) {}

  bool failed() const { return _failed; }
  bool at_end() const { return _position >= _end; }
  uintptr_t position() const { return _position; }
  uintptr_t end() const { return _end; }

  void skip(uint64_t count) {
    if (_failed || count > _end - _position) {
      fail();
    } else {
      _position += count;
    }
  }

  // Nothing is read behind the next `count` bytes any more.
  void limit(uint64_t count) {
    if (_failed || count > _end - _position) {
      fail();
    } else {
      _end = _position + count;
    }
  }

  uint8_t u1() {
    if (!fetch()) return 0;
    const uintptr_t offset = _position++ % sizeof(uintptr_t);
    return uint8_t(_word >> (8 * offset));
  }

  uint16_t u2() { return uint16_t(bytes(2)); }
  uint32_t u4() { return uint32_t(bytes(4)); }
  uint64_t u8() { return bytes(8); }
  uint64_t s1() { return sign_extended(bytes(1), 8); }
  uint64_t s2() { return sign_extended(bytes(2), 16); }
  uint64_t s4() { return sign_extended(bytes(4), 32); }

  uint64_t leb128(bool is_signed) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = u1();
      value |= uint64_t(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) {
        return is_signed && shift + 7 < 64 ? sign_extended(value, shift + 7) : value;
      }
    }
    fail();
    return 0;
  }
  uint64_t uleb() { return leb128(false); }
  uint64_t sleb() { return leb128(true); }

  uint64_t value_of_format(uint8_t encoding) {
    switch (encoding & format_mask) {
      case 0x0:
        return u8();
      case 0x1:
        return uleb();
      case 0x2:
        return u2();
      case unsigned4:
        return u4();
      case 0x4:
        return u8();
      case 0x9:
        return sleb();
      case 0xa:
        return s2();
      case signed4:
        return s4();
      case 0xc:
        return u8();
      default:
        fail();
        return 0;
    }
  }

  uintptr_t encoded_pointer(uint8_t encoding) {
    const uintptr_t place = _position;
    const uint64_t value = value_of_format(encoding);
    switch (encoding & ~format_mask) {
      case absolute:
        return value;
      case pc_relative:
        return place + value;
      default:
        fail();
        return 0;
    }
  }
};

// The part of a stack that may be read.
class AsyncUnwindStack {
  const uintptr_t _low;
  const uintptr_t _high;

 public:
  AsyncUnwindStack(uintptr_t low, uintptr_t high) : _low(low), _high(high) {}

  // Could sp be here? It may stand at the very end.
  bool is_pointer(uintptr_t address) const {
    return address % sizeof(uintptr_t) == 0 && _low <= address && address <= _high;
  }
  bool load_word(uintptr_t address, uintptr_t* value) const {
    return is_pointer(address) && _high - address >= sizeof(uintptr_t) &&
           AsyncUnwindReader::load(address, value);
  }
};

#endif  // SHARE_PRIMS_ASYNCUNWINDREADER_HPP
