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

#ifndef CPU_X86_ASYNCSTRAIGHTCODE_X86_HPP
#define CPU_X86_ASYNCSTRAIGHTCODE_X86_HPP

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// One instruction, of those that adapters, entries of the interpreter and searches in strings have: its
// size, and what it does to sp.
class StraightInstruction {
 public:
  StraightInstruction(const u1* at, const u1* end) {
    const size_t most = sizeof(_code) - 8;
    const size_t available = end > at ? static_cast<size_t>(end - at) : 0;
    memcpy(_code, at, available < most ? available : most);
    read_prefixes();
    read_opcode();
    if (_size > available) _size = 0;
  }

  // 0: another instruction.
  size_t size() const { return _size; }
  // By so many bytes sp is lower behind it.
  ptrdiff_t pushed() const { return _pushed; }
  // sp is something else.
  bool sets_sp() const { return _sets_sp; }
  // Control never comes to what is behind it from here.
  bool leaves() const { return _leaves; }

 private:
  void read_prefixes() {
    const size_t most = 4;
    while (_size < most && (_code[_size] == 0x66 || _code[_size] == 0xf2 || _code[_size] == 0xf3 ||
                            (_code[_size] & 0xf0) == 0x40)) {
      _half = _half || _code[_size] == 0x66;
      _wide = (_code[_size] & 0xf8) == 0x48;
      _extended = (_code[_size] & 0xf1) == 0x41;
      _size++;
    }
  }

  void read_opcode() {
    const u1 opcode = _code[_size++];
    const size_t immediate = _half ? 2 : 4;
    const u1 kind = (_code[_size] >> 3) & 7;  // of what has an operand
    if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62) {
      read_vector_move(opcode);
    } else if (opcode == 0x0f) {
      read_long_opcode();
    } else if ((opcode & 0xf0) == 0x50) {
      _pushed = (opcode & 8) == 0 ? 8 : -8;
    } else if (opcode == 0x9c || opcode == 0x9d) {
      _pushed = opcode == 0x9c ? 8 : -8;
    } else if (opcode == 0xc3) {
      _leaves = true;
    } else if ((opcode & 0xfe) == 0xe8 || opcode == 0xa9) {
      _size += 4;
    } else if ((opcode & 0xf0) == 0x70 || opcode == 0xeb || opcode == 0xa8) {
      _size += 1;
    } else if ((opcode & 0xf8) == 0xb8) {
      _size += _wide ? 8 : immediate;
    } else if (opcode < 0x40 && (opcode & 7) < 4) {
      with_operand(0);
    } else if (opcode < 0x40 && (opcode & 7) < 6) {
      _size += (opcode & 7) == 4 ? 1 : immediate;
    } else if (opcode == 0x81 || opcode == 0x83) {
      read_arithmetic(opcode == 0x81 ? immediate : 1, kind);
    } else if (opcode == 0x80 || opcode == 0xc0 || opcode == 0xc1 || opcode == 0xc6) {
      with_operand(1);
    } else if (opcode == 0xc7) {
      with_operand(immediate);
    } else if (opcode == 0xf6 || opcode == 0xf7) {
      with_operand(kind > 1 ? 0 : opcode == 0xf6 ? 1 : immediate);
    } else if (opcode == 0x63 || (opcode & 0xfc) == 0x84 || (opcode & 0xfc) == 0x88 ||
               opcode == 0xd1 || opcode == 0xd3 || opcode == 0xff) {
      _sets_sp = opcode == 0x8b ? kind == 4 && _wide && (_code[_size - 2] & 4) == 0
                                : opcode == 0x89 && _wide && !_extended && _code[_size] >= 0xc0 &&
                                      (_code[_size] & 7) == 4;
      _leaves = opcode == 0xff && kind == 4;
      with_operand(0);
    } else if (opcode == 0x8d) {
      with_operand(0);
      _sets_sp = kind == 4 && (_code[0] & 4) == 0;
    } else if (opcode != 0x90) {
      _size = SIZE_MAX;
    }
  }

  void read_long_opcode() {
    const u1 opcode = _code[_size++];
    const u1 second_map = 0x38, third_map = 0x3a, shift = 0x73;
    if ((opcode & 0xf0) == 0x80) {
      _size += 4;
    } else if (opcode == second_map || opcode == third_map) {
      _size++;
      with_operand(opcode == third_map ? 1 : 0);
    } else if ((opcode & 0xf6) == 0xb6 || (opcode & 0xf0) == 0x40 || opcode == 0x1f ||
               opcode == 0xae || is_vector_move(opcode)) {
      with_operand(0);
    } else if (opcode == 0xba || opcode == shift) {
      with_operand(1);
    } else {
      _size = SIZE_MAX;
    }
  }

  static bool is_vector_move(u1 opcode) {
    const u1 moves[] = {0x10, 0x11, 0x28, 0x29, 0x6e, 0x6f, 0x7e, 0x7f, 0x90, 0x91, 0xd6};
    return memchr(moves, opcode, sizeof(moves)) != nullptr;
  }

  // By VEX and EVEX.
  void read_vector_move(u1 prefix) {
    const u1 map = prefix == 0xc4 ? _code[_size] & 0x1f : 1;
    _size += prefix == 0xc5 ? 1 : prefix == 0xc4 ? 2 : 3;
    const u1 opcode = _code[_size++], zero_upper = 0x77, shift = 0x73;
    if (map == 2) {
      with_operand(0);
    } else if (map == 3 || (prefix != 0x62 && opcode == shift)) {
      with_operand(1);
    } else if (is_vector_move(opcode)) {
      with_operand(0);
    } else if (opcode != zero_upper) {
      _size = SIZE_MAX;
    }
  }

  void read_arithmetic(size_t immediate, u1 kind) {
    const u1 sp = 0xc4, add = 0, subtract = 5, compare = 7;
    const bool of_sp = _wide && !_extended && (_code[_size] & 0xc7) == sp;
    with_operand(immediate);
    if (!of_sp || kind == compare) return;
    int32_t value = static_cast<int8_t>(_code[_size - 1]);
    if (immediate == sizeof(value)) memcpy(&value, _code + _size - sizeof(value), sizeof(value));
    _sets_sp = kind != add && kind != subtract;
    _pushed = kind == add ? -value : kind == subtract ? value : 0;
  }

  void with_operand(size_t immediate) {
    const u1 operand = _code[_size], mode = operand >> 6, base = operand & 7;
    const u1 scaled = 4, none = 5;
    _size += 1 + immediate;
    if (mode == 3) return;
    const bool absolute =
        mode == 0 && (base == none || (base == scaled && (_code[_size - immediate] & 7) == none));
    _size += (base == scaled ? 1 : 0) + (mode == 1 ? 1 : mode == 2 || absolute ? 4 : 0);
  }

  u1 _code[24] = {};
  size_t _size = 0;
  ptrdiff_t _pushed = 0;
  bool _half = false;
  bool _wide = false;
  bool _extended = false;
  bool _sets_sp = false;
  bool _leaves = false;
};

// By how many bytes code has sp lower at pc than at `from`. Jumps in it are over what leaves sp as it was;
// what stands behind one that leaves it is jumped to with sp as at `from`. False where it cannot be told.
inline bool bytes_pushed(const u1* from, const u1* pc, const u1* end, ptrdiff_t* bytes) {
  bool known = true;
  *bytes = 0;
  while (from < pc) {
    const StraightInstruction one(from, end);
    if (one.size() == 0) return false;
    *bytes += one.pushed();
    known = known && !one.sets_sp();
    if (one.leaves()) {
      *bytes = 0;
      known = true;
    }
    from += one.size();
  }
  return from == pc && known && *bytes >= 0;
}

// C2's search in strings, which copies short ones to the stack where reading on would leave their page
// (C2_MacroAssembler::string_indexof). It keeps sp in rcx, makes room or does not, and pushes rcx; in the
// end it pops sp.
class StringSearch {
 public:
  // False when pc is in none.
  bool find(const u1* pc, const u1* begin, const u1* end) {
    static const u1 keep[] = {0x48, 0x8b, 0xcc};  // mov rcx, rsp
    const ptrdiff_t most = 1024, size = sizeof(keep);
    for (const u1* at = pc - size; at >= begin && pc - at <= most; at--) {
      if (end - at > size && memcmp(at, keep, size) == 0 && follow(at + size, pc, end)) return true;
    }
    return false;
  }

  // Whether sp of the frame is on top of the stack already.
  bool has_pushed() const { return _pushed; }
  // Until then: whether there may be so many words on top of the frame.
  bool may_be(uintptr_t words) const { return words <= most_words && ((_words >> words) & 1) != 0; }

  static constexpr uintptr_t most_words = 8;

 private:
  struct Jump {
    const u1* to;
    uint32_t words;
  };

  bool follow(const u1* at, const u1* pc, const u1* end) {
    const u1 push_cx = 0x51, pop_sp = 0x5c;
    const int most_jumps = 8;
    Jump jumps[most_jumps];
    int count = 0;
    _words = 1;  // a bit for each number that there may be
    _pushed = false;
    while (at < pc) {
      const StraightInstruction one(at, end);
      if (one.size() == 0 || (_pushed && *at == pop_sp)) return false;
      if (*at == push_cx) {
        _pushed = true;
      } else if (!_pushed) {
        const ptrdiff_t distance = static_cast<int8_t>(at[1]);
        const u1* const next = at + one.size();
        if ((*at & 0xf0) == 0x70 && distance > 0) {
          if (count == most_jumps) return false;
          jumps[count++] = {next + distance, _words};
        }
        const ptrdiff_t words = one.pushed() / static_cast<ptrdiff_t>(sizeof(uintptr_t));
        const ptrdiff_t most = most_words;
        if (one.sets_sp() || one.leaves() || words > most || words < -most) return false;
        _words = words < 0 ? _words >> -words : _words << words;
      }
      at += one.size();
      for (int i = 0; i < count && !_pushed; i++) _words |= jumps[i].to == at ? jumps[i].words : 0;
    }
    return at == pc;
  }

  uint32_t _words = 0;
  bool _pushed = false;
};

#endif  // CPU_X86_ASYNCSTRAIGHTCODE_X86_HPP
