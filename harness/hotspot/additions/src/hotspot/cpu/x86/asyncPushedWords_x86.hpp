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

#ifndef CPU_X86_ASYNCPUSHEDWORDS_X86_HPP
#define CPU_X86_ASYNCPUSHEDWORDS_X86_HPP

#include "asyncInstructions_x86.hpp"

#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"

// What compiled code and stubs keep on the stack below their frame, for a call or for themselves.

// A register form or one of the words above sp: bytes of the operand, from ModRM on; 0 for others.
inline size_t size_of_stack_operand(const u1* at) {
  const u1 mode = at[0] >> 6, with_base = 4, base_is_sp = 0x24;
  if (mode == 3) return 1;
  if ((at[0] & 7) != with_base || at[1] != base_is_sp) return 0;
  return mode == 0 ? 2 : mode == 1 ? 3 : 6;
}

// A register moved to another or to the stack, or back: bytes of the instruction, 0 for others.
// General registers, and vectors by VEX and EVEX (which have no other operand with this opcode).
inline size_t size_of_save(const u1* at, const u1* end) {
  if (end - at < 16) return 0;
  size_t opcode = 0;
  if ((*at & 0xf8) == 0x48 && (at[1] == 0x89 || at[1] == 0x8b)) opcode = 1;
  if (*at == 0xc5) opcode = 2;
  if (*at == 0xc4) opcode = 3;
  if (*at == 0x62) opcode = 4;
  if (opcode == 0) return 0;
  const u1 moves[] = {0x10, 0x11, 0x28, 0x29, 0x6f, 0x7f, 0x90, 0x91, 0xd6, 0x7e, 0x6e};
  if (opcode > 1 && memchr(moves, at[opcode], sizeof(moves)) == nullptr) return 0;
  const size_t operand = size_of_stack_operand(at + opcode + 1);
  return operand == 0 ? 0 : opcode + 1 + operand;
}

// The load of an address: bytes of the instruction, 0 for others.
inline size_t size_of_address(const u1* at, const u1* end) {
  const u1 load = 0x8d, scaled = 4, none = 5;
  if (end - at < 8 || (*at & 0xf8) != 0x48 || at[1] != load) return 0;
  const u1 mode = at[2] >> 6, base = at[2] & 7;
  const bool absolute = mode == 0 && (base == none || (base == scaled && (at[3] & 7) == none));
  return 3 + (base == scaled ? 1 : 0) + (absolute || mode == 2 ? 4 : mode == 1 ? 1 : 0);
}

// How many words compiled code has pushed around the call of a barrier's slow path, for its
// arguments or what it must not lose (ZBarrierSetAssembler::generate_c1_load_barrier_stub and
// Shenandoah's; SaveLiveRegisters in barrierSetAssembler_x86.cpp).
inline int words_pushed_for_barrier(const u1* pc, const u1* begin, const u1* end) {
  if (bytes_are(pc, end, kSubtractSpBy16))
    return pc > begin && bytes_are(pc - 1, end, kPushAx) ? 1 : 0;
  const ptrdiff_t most = 400;
  for (const u1* at = pc - begin > most ? pc - most : begin; at < pc; at++) {
    // Not where a frame is made.
    const bool by_byte = bytes_are(at, end, kSubtractSp8);
    const u1* next = at + (by_byte ? 4 : 7);
    const bool makes_frame = at == begin || bytes_are(at - 1, end, kPushFp) ||
                             bytes_are(next, end, kSaveFp8) || bytes_are(next, end, kSaveFp32) ||
                             (at - begin >= 3 && bytes_are(at - 3, end, kMoveSpToFp));
    if ((!by_byte && !bytes_are(at, end, kSubtractSp32)) || makes_frame || next > pc) continue;
    int32_t bytes = by_byte ? static_cast<int8_t>(at[3]) : 0;
    if (!by_byte) memcpy(&bytes, at + 3, sizeof(bytes));
    const int32_t most_bytes = 4 * K;
    if (bytes <= 0 || bytes % wordSize != 0 || bytes > most_bytes) continue;
    const int kept = at > begin && bytes_are(at - 1, end, kPushAx) ? 1 : 0;
    int words = kept + bytes / wordSize;
    while (next < pc) {
      const size_t saved = size_of_save(next, end);
      const size_t saves = saved != 0 ? saved : size_of_address(next, end);
      if (saves != 0) {
        next += saves;
      } else if (*next == 0xe8) {
        next += 5;
      } else if (bytes_are(next, end, kVzeroupper)) {
        next += sizeof(kVzeroupper);
      } else if (bytes_are(next, end, by_byte ? kAddSpByByte : kAddSp32)) {
        words = kept;
        next += by_byte ? 4 : 7;
      } else {
        break;
      }
    }
    if (next == pc) return words;
  }
  return 0;
}

// A push or pop (by its opcode) of a register: bytes of the instruction, 0 for others.
inline ptrdiff_t size_of_stack_move(const u1* at, const u1* end, u1 opcode) {
  const bool extended = at < end && *at == 0x41;
  return at + extended < end && (at[extended] & 0xf8) == opcode ? 1 + extended : 0;
}
static const u1 kPush = 0x50, kPop = 0x58;

// C1's call of the stub that checks a subtype: two arguments are pushed before it, and popped after
// it (LIR_Assembler::emit_typecheck_helper). The copy of an array keeps the same two words pushed
// around all of it (LIR_Assembler::emit_arraycopy).
struct SubtypeCheck {
  const u1 *first, *second, *call, *pops, *popped, *end;

  // Whether one begins at `at`.
  bool find(const u1* at, const u1* code_end) {
    const ptrdiff_t size = 5;
    first = at;
    second = first + size_of_stack_move(first, code_end, kPush);
    call = second + size_of_stack_move(second, code_end, kPush);
    if (second == first || call == second || code_end - call < size || *call != 0xe8) return false;
    int32_t distance = 0;
    memcpy(&distance, call + 1, sizeof(distance));
    pops = call + size;
    const CodeBlob* const target = CodeCache::find_blob(const_cast<u1*>(pops + distance));
    if (target == nullptr || !bytes_are(target->code_begin(), target->code_end(), kPushDiSiCxAx)) {
      return false;
    }
    popped = pops + size_of_stack_move(pops, code_end, kPop);
    end = popped + size_of_stack_move(popped, code_end, kPop);
    return true;
  }

  int words_at(const u1* pc) const {
    if (pc == second || pc == popped) return 1;
    return pc == call || pc == pops ? 2 : 0;
  }

  // Where the same registers are pushed before it; null when they are not, or not popped behind it.
  const u1* around(const u1* begin, const u1* code_end) const {
    const ptrdiff_t most = 96, pushes = call - first;
    const u1* pops_again = end + (end < code_end && (*end & 0xf0) == 0x40 ? 3 : 2);  // test
    const u1 long_jump = 0x0f;
    pops_again += pops_again < code_end && *pops_again == long_jump ? 6 : 2;
    const ptrdiff_t size = end - pops;
    if (size <= 0 || code_end - pops_again < size || memcmp(pops_again, pops, size) != 0) {
      return nullptr;
    }
    for (const u1* at = first - pushes; at >= begin && first - at <= most; at--) {
      if (memcmp(at, first, pushes) == 0) return at;
    }
    return nullptr;
  }

  // Of those around it.
  int words_around_at(const u1* pc, const u1* begin, const u1* code_end) const {
    const u1* const outer = around(begin, code_end);
    if (outer == nullptr) return 0;
    const ptrdiff_t one = second - first, one_popped = popped - pops, size = end - pops;
    if (pc == outer + one) return 1;
    if (pc > outer + one && pc <= end) return 2;
    // There are two ways on; each begins by popping them.
    const bool as_popped = code_end - pc >= size && memcmp(pc, pops, size) == 0;
    const bool at_jump = pc - end <= 3;  // behind the test
    if (pc > end && (as_popped || at_jump)) return 2;
    const bool half = pc - one_popped > end && code_end - pc >= size - one_popped &&
                      memcmp(pc - one_popped, pops, size) == 0;
    return half ? 1 : 0;
  }
};

// How many words C1's code has on the stack for such a check.
inline int words_pushed_for_check(const u1* pc, const u1* begin, const u1* end) {
  const ptrdiff_t most = 640, before = 112;
  const u1* const from = pc - begin > most ? pc - most : begin;
  const u1* const to = end - pc > before ? pc + before : end;
  SubtypeCheck check;
  int most_words = 0;
  for (const u1* at = from; at < to; at++) {
    if (((*at & 0xf8) != kPush && *at != 0x41) || !check.find(at, end)) continue;
    const int words = check.words_at(pc) + check.words_around_at(pc, begin, end);
    if (words > most_words) most_words = words;
  }
  return most_words;
}

// A stub that uses rbp for something else keeps sp on a stack that it aligns
// (MacroAssembler::sha256_AVX2, sha512_AVX2). While pc is there: the frame pointer, by what stands at
// sp + at().
class KeptSp {
 public:
  // False when pc is at no such place.
  bool find(const u1* pc, const u1* begin, const u1* end) {
    static const u1 move_sp_to_ax[] = {0x48, 0x8b, 0xc4}, align[] = {0x48, 0x83, 0xe4};
    static const u1 store_ax[] = {0x48, 0x89, 0x44, 0x24}, restore[] = {0x48, 0x8b, 0x64, 0x24};
    if (!begins_with_fp(begin, end)) return false;
    const u1* at = begin + sizeof(kPushFpMoveSpToFp);
    while (const ptrdiff_t size = size_of_stack_move(at, end, kPush)) {
      at += size;
      _pushed++;
    }
    if (!bytes_are(at, end, move_sp_to_ax)) return false;
    at += sizeof(move_sp_to_ax);
    at += bytes_are(at, end, kSubtractSp32) ? 7 : 4;
    if (!bytes_are(at, end, align) || !bytes_are(at + 4, end, store_ax)) return false;
    at += 4 + sizeof(store_ax);
    if (pc <= at || at >= end) return false;
    _at = *at;
    for (;;) {
      at = find_bytes(at, end, restore);
      if (end - at <= static_cast<ptrdiff_t>(sizeof(restore)) || pc <= at) return true;
      if (at[sizeof(restore)] == _at) break;
      at++;
    }
    // Its callee-saved registers are popped, rbp may be one of them.
    _restored = true;
    for (at += sizeof(restore) + 1; at < pc; _pushed--) {
      const ptrdiff_t size = size_of_stack_move(at, end, kPop);
      if (size == 0) return false;
      at += size;
    }
    return at == pc && _pushed >= 0;
  }

  // Whether sp is what was kept already.
  bool restored() const { return _restored; }
  ptrdiff_t at() const { return _at; }
  // Words between the kept sp and where rbp was pushed at the entry.
  int pushed() const { return _pushed; }

 private:
  u1 _at = 0;
  int _pushed = 0;
  bool _restored = false;
};

#endif  // CPU_X86_ASYNCPUSHEDWORDS_X86_HPP
