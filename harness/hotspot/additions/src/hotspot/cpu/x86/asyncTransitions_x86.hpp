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

#ifndef CPU_X86_ASYNCTRANSITIONS_X86_HPP
#define CPU_X86_ASYNCTRANSITIONS_X86_HPP

#include "asyncInstructions_x86.hpp"
#include "asyncStraightCode_x86.hpp"

// Between interpreted frames and others: where the return address and the caller's sp are.

// The interpreter's way out of an activation, behind the instruction that takes the frame down
// (InterpreterMacroAssembler::remove_activation and what follows it; entries of methods that need
// no frame): where the return address and the caller's sp are.
class Leaving {
 public:
  // False when pc is on no such way.
  bool find(const u1* pc, const u1* begin, const u1* end) {
    const ptrdiff_t most = 160;
    for (const u1* at = pc - 1; at >= begin && pc - at <= most; at--) {
      const u1* const next = at + sizeof(kLeave);
      const bool leave = bytes_are(at, end, kLeave) &&
                         (bytes_are(next, end, kClearCriticalSection) || pop_of(next, end) >= 0);
      const bool frameless =
          pop_of(at, end) >= 0 && *at != 0x41 && bytes_are(next, end, kMoveR13ToSp);
      if (leave && follow(next, pc, end)) {
        _had_frame = true;
        return true;
      }
      if (frameless && follow(at, pc, end)) return true;
    }
    return false;
  }

  // The number of the register with the return address; -1 while it is at sp + return_offset().
  int return_register() const { return _register; }
  ptrdiff_t return_offset() const { return _offset; }
  // The number of the register with the caller's sp; -1 when that is sp + above().
  int sender_register() const { return _moved && !_aligned ? -1 : _sender; }
  ptrdiff_t above() const { return _above; }
  // Whether sp has left the return address behind, below it.
  bool moved() const { return _moved; }
  // Whether there was a frame.
  bool had_frame() const { return _had_frame; }

 private:
  static int pop_of(const u1* at, const u1* end) {
    const bool extended = at < end && *at == 0x41;
    if (extended) at++;
    return at < end && (*at & 0xf8) == 0x58 ? (*at & 7) + (extended ? 8 : 0) : -1;
  }
  static int push_of(const u1* at, const u1* end) {
    return at < end && (*at & 0xf8) == 0x50 ? *at & 7 : -1;
  }

  // Passes what stands from `at` on up to pc; then as far as sp is set, to learn from where.
  bool follow(const u1* at, const u1* pc, const u1* end) {
    *this = Leaving();
    while (at < pc) {
      const size_t size = pass(at, end);
      if (size == 0) return false;
      at += size;
    }
    if (at != pc) return false;
    Leaving here = *this;
    while (!_moved) {
      const size_t size = pass(at, end);
      if (size == 0) return false;
      at += size;
    }
    here._sender = _sender;
    *this = here;
    return true;
  }

  // The size of the instruction; 0 when it is none of those.
  size_t pass(const u1* at, const u1* end) {
    const int popped = pop_of(at, end), pushed = push_of(at, end);
    if (popped >= 0) {
      if (_register < 0 && _offset == 0) {
        _register = popped;
      } else {
        _offset -= wordSize;
      }
      _above -= wordSize;
      return *at == 0x41 ? 2 : 1;
    }
    if (pushed >= 0) {
      grow(wordSize);
      if (_register == pushed) {
        _register = -1;
        _offset = 0;
      }
      return 1;
    }
    if (end - at >= 3 && (*at & 0xfe) == 0x48 && at[1] == 0x8b && (at[2] & 0xf8) == 0xe0) {
      _sender = (at[2] & 7) + (*at == 0x49 ? 8 : 0);
      _moved = true;
      _above = 0;
      return 3;
    }
    if (bytes_are(at, end, kAlignSp)) {
      _aligned = true;
      return 4;
    }
    if (bytes_are(at, end, kSubtractSp8By8)) {
      grow(wordSize);
      return 4;
    }
    if (bytes_are(at, end, kAddSp8)) {
      grow(-wordSize);
      return 4;
    }
    return size_of_other(at, end);
  }

  static size_t size_of_other(const u1* at, const u1* end) {
    static const u1 compare_sp[] = {0x49, 0x3b, 0xa7}, load[] = {0x49, 0x8b, 0x87};
    static const u1 test_sp[] = {0x40, 0xf6, 0xc4, 0x0f}, branch[] = {0x0f, 0x84};
    if (bytes_are(at, end, kClearCriticalSection)) return 8;
    if (bytes_are(at, end, compare_sp) || bytes_are(at, end, load)) return 7;
    // PopFrame's last one asks for the call to be made again.
    if (bytes_are(at, end, kStoreToThread) || bytes_are(at, end, kStoreIntToThread)) return 11;
    if (bytes_are(at, end, test_sp)) return 4;
    if (bytes_are(at, end, branch)) return 6;
    if (bytes_are(at, end, kVzeroupper)) return 3;
    if (end - at < 5) return 0;
    const u1 over_a_call = 5;  // of what is called with the stack aligned
    if (*at == 0x72 || (*at == 0xeb && at[1] == over_a_call)) return 2;
    if (*at == 0xe8 || (*at == 0xe9 && at[1] == over_a_call && at[2] == 0 && at[3] == 0)) return 5;
    const bool moves = (*at & 0xf8) == 0x48 && (at[1] == 0x8b || at[1] == 0x89);
    return moves && (at[2] & 0xc0) == 0xc0 ? 3 : 0;  // between registers
  }

  void grow(ptrdiff_t bytes) {
    _offset += bytes;
    _above += bytes;
  }

  int _register = -1;
  int _sender = -1;
  ptrdiff_t _offset = 0;
  ptrdiff_t _above = 0;
  bool _moved = false;
  bool _aligned = false;
  bool _had_frame = false;
};

// The adapters of a blob (SharedRuntime::generate_i2c2i_adapters): how far sp is below the return
// address and the caller's sp, in bytes, by nothing but where pc is.
struct AdapterDepth {
  ptrdiff_t return_at;
  ptrdiff_t caller_sp;
  ptrdiff_t or_return_at;  // the stack has been aligned, by that or by nothing

  AdapterDepth(const u1* pc, const CodeBlob* blob) : return_at(0), caller_sp(wordSize) {
    find(pc, blob);
    if (!_aligned) or_return_at = return_at;
  }

 private:
  void find(const u1* pc, const CodeBlob* blob) {
    const u1* const end = blob->code_end();
    const u1* const from_interpreter_end = find_bytes(blob->code_begin(), end, kJumpToR11);
    if (pc <= from_interpreter_end) {
      if (bytes_are(blob->code_begin(), end, kMoveSpToR11PopAx)) {
        while_popped(blob->code_begin() + sizeof(kMoveSpToR11PopAx), pc, end);
      }
      return;
    }
    const u1* const load = find_bytes(from_interpreter_end, end, kLoadSenderSpToR13);
    const u1* const kept = find_bytes(from_interpreter_end, load, kMoveSpToR13);
    const u1* pop = load + sizeof(kLoadSenderSpToR13);
    if (bytes_are(pop, end, kCheckAlignmentOfR13)) {
      pop = jumped_to(pop + sizeof(kCheckAlignmentOfR13), end);
    }
    if (pc >= load) {
      if (bytes_are(pop, end, kPopAx)) while_popped(pop + sizeof(kPopAx), pc, end);
    } else if (pc <= kept) {
      // Barriers save registers.
      ptrdiff_t saved = 0;
      if (bytes_pushed(from_interpreter_end + sizeof(kJumpToR11), pc, kept, &saved)) {
        return_at = saved;
        caller_sp = saved + wordSize;
      }
    } else {
      while_patched(kept, pc, load);
    }
  }

  static int32_t operand(const u1* at) {
    int32_t value = 0;
    memcpy(&value, at, sizeof(value));
    return value;
  }

  // The return address is taken off the stack, room for arguments made, and it is put back.
  void while_popped(const u1* popped, const u1* pc, const u1* end) {
    if (pc < popped) return;
    const u1* at = popped;
    ptrdiff_t room = 0;
    const bool short_form = bytes_are(at, end, kSubtractSp8);
    const bool makes_room = short_form || bytes_are(at, end, kSubtractSp32);
    const u1* const made = !makes_room ? at : at + (short_form ? 4 : 7);
    if (pc >= made && makes_room) room = short_form ? static_cast<int8_t>(at[3]) : operand(at + 3);
    at = made;
    if (bytes_are(at, end, kAlignSp)) {
      at += sizeof(kAlignSp);
      _aligned = pc == at;
    }
    const bool put_back = pc > at && bytes_are(at, end, kPushAx);
    caller_sp = room + (put_back ? wordSize : 0);
    return_at = put_back ? 0 : room - (_aligned ? 0 : wordSize);
    or_return_at = room - wordSize;
  }

  // The caller is patched: all registers are saved, on a stack that is aligned. It was not, as at
  // each entry to compiled code.
  void while_patched(const u1* kept, const u1* pc, const u1* end) {
    const u1* const aligned = find_bytes(kept, end, kAlignSp) + sizeof(kAlignSp);
    if (pc >= aligned && aligned < end) while_all_saved(aligned, wordSize, pc, end);
  }

  // From where the flags are pushed; `below` bytes below the return address there.
  void while_all_saved(const u1* aligned, ptrdiff_t below, const u1* pc, const u1* end) {
    const ptrdiff_t flags = 1, align = 4, registers = 7, all_registers = 128;
    const u1* const saved = aligned + flags + align + registers;
    const u1* const more = find_bytes(saved, end, kSubtractSp32);
    const u1* const less = find_bytes(more, end, kAddSp32);
    const u1* const restored = find_bytes(less + registers, end, kAddSp32);
    const u1* const steps_down[] = {aligned, aligned + flags, aligned + flags + align, saved,
                                    more + registers};
    const u1* const steps_up[] = {less + registers, restored + registers,
                                  restored + registers + align,
                                  restored + registers + align + flags};
    const ptrdiff_t extra = end - more >= registers ? operand(more + 3) : 0;
    const ptrdiff_t down[] = {below, wordSize, wordSize, all_registers, extra};
    const ptrdiff_t up[] = {extra, all_registers, wordSize, wordSize};
    for (int i = 0; i < 5; i++) return_at += pc >= steps_down[i] ? down[i] : 0;
    for (int i = 0; i < 4; i++) return_at -= pc >= steps_up[i] ? up[i] : 0;
    caller_sp = return_at + wordSize;
  }

  bool _aligned = false;
};

// Whether pc is where a blob saves all registers, behind a frame pointer that it has set, and loads
// r14 next (SharedRuntime::generate_deopt_blob).
inline bool is_saving_registers(const u1* pc, const u1* begin, const u1* end) {
  static const u1 load_r14[] = {0x41, 0xbe};
  const ptrdiff_t most = 1024;
  const ptrdiff_t size = sizeof(kPushFpMoveSpToFp);
  for (const u1* at = pc; at >= begin && pc - at <= most; at--) {
    if (bytes_are(at, end, kPushFpMoveSpToFp)) {
      return pc > at && find_bytes(at + size, pc, load_r14) >= pc;
    }
  }
  return false;
}

#endif  // CPU_X86_ASYNCTRANSITIONS_X86_HPP
