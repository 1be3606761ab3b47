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

#ifndef CPU_X86_ASYNCINSTRUCTIONS_X86_HPP
#define CPU_X86_ASYNCINSTRUCTIONS_X86_HPP

#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"

// The instructions by which asyncStackWalker_x86.cpp and asyncStubs_x86.cpp tell how far a frame is
// built or taken down.

// Whether the bytes at `at`, which may be beyond `end`, are these, all of them below it.
template <size_t N>
inline bool bytes_are(const u1* at, const u1* end, const u1 (&bytes)[N]) {
  // The first one before the call: code is searched byte by byte, and sanitizers see each memcmp.
  return end - at >= static_cast<ptrdiff_t>(N) && *at == bytes[0] && memcmp(at, bytes, N) == 0;
}

static const u1 kRet[] = {0xc3};
static const u1 kPopFp[] = {0x5d};
static const u1 kPushFp[] = {0x55};
static const u1 kMoveSpToFp[] = {0x48, 0x8b, 0xec};
static const u1 kSubtractSp8[] = {0x48, 0x83, 0xec};
static const u1 kSubtractSp32[] = {0x48, 0x81, 0xec};
static const u1 kSaveFp8[] = {0x48, 0x89, 0x6c, 0x24};
static const u1 kSaveFp32[] = {0x48, 0x89, 0xac, 0x24};
static const u1 kBangStack[] = {0x89, 0x84, 0x24};
static const u1 kComparePollWithSp8[] = {0x49, 0x3b, 0x67};
static const u1 kComparePollWithSp32[] = {0x49, 0x3b, 0xa7};
static const u1 kJumpAbove[] = {0x0f, 0x87};
static const u1 kJumpBelow[] = {0x0f, 0x82};
static const u1 kVzeroupper[] = {0xc5, 0xf8, 0x77};
static const u1 kLoadPcToR10[] = {0x4c, 0x8d, 0x15};
static const u1 kLoadImmediateToR10[] = {0x49, 0xba};
static const u1 kStoreR10ToThread[] = {0x4d, 0x89, 0x97};
static const u1 kJump[] = {0xe9};
static const u1 kPopToTop[] = {0x48, 0x8f, 0x04, 0x24};
static const u1 kAddSp8[] = {0x48, 0x83, 0xc4, 0x08};
static const u1 kJumpToR11[] = {0x41, 0xff, 0xe3};
static const u1 kSubtractSp8By8[] = {0x48, 0x83, 0xec, 0x08};
static const u1 kAddSp32[] = {0x48, 0x81, 0xc4};
static const u1 kAlignSp[] = {0x48, 0x83, 0xe4, 0xf0};
static const u1 kSubtractSpBy16[] = {0x48, 0x83, 0xec, 0x10};
static const u1 kAddSpByByte[] = {0x48, 0x83, 0xc4};
static const u1 kPushBx[] = {0x53};
static const u1 kMoveDxToR11[] = {0x4c, 0x8b, 0xda};
static const u1 kPushDiSiCxAx[] = {0x57, 0x56, 0x51, 0x50};
static const u1 kLoadSpAboveSp8[] = {0x48, 0x8d, 0x64, 0x24};  // lea rsp, [rsp + 8 bits]
static const u1 kStoreDxAsReturnAddress[] = {0x48, 0x89, 0x55, 0x08};
static const u1 kStoreBxAsReturnAddress[] = {0x48, 0x89, 0x5d, 0x08};
static const u1 kPushMinusOne[] = {0x68, 0xff, 0xff, 0xff, 0xff};
static const u1 kLoadReturnAddressByFpToDx[] = {0x48, 0x8b, 0x55, 0x08};  // mov dx, [bp + 8]
static const u1 kPushAx[] = {0x50};
static const u1 kPopAx[] = {0x58};
static const u1 kPopAxLoadLocals[] = {0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8};
static const u1 kPushZero[] = {0x68, 0, 0, 0, 0};
static const u1 kPopAxPopBxPushAx[] = {0x58, 0x5b, 0x50};
static const u1 kMoveSpToR11PopAx[] = {0x4c, 0x8b, 0xdc, 0x58};
static const u1 kPushFpMoveSpToFp[] = {0x55, 0x48, 0x8b, 0xec};
static const u1 kLoadImmediateToBx[] = {0x48, 0xbb};
static const u1 kStoreToThread[] = {0x49, 0xc7, 0x87};         // a word
static const u1 kStoreIntToThread[] = {0x41, 0xc7, 0x87};      // 32 bits
static const u1 kStoreToThread8[] = {0x49, 0xc7, 0x47};        // the same, at an 8-bit offset
static const u1 kClearCriticalSection[] = {0x41, 0xc6, 0x87};  // a byte of the thread's
static const u1 kLoadFromThread[] = {0x49, 0x8b, 0x47};        // to rax, at an 8-bit offset
static const u1 kMoveSpToR13[] = {0x4c, 0x8b, 0xec};
static const u1 kMoveR13ToSp[] = {0x49, 0x8b, 0xe5};
static const u1 kLoadSenderSpToR13[] = {0x4c, 0x8d, 0x6c, 0x24, 0x08};
// What a debug build checks, and jumps on where it holds; else it stops.
static const u1 kCheckAlignmentOfR13[] = {0x41, 0xf6, 0xc5, 0x0f, 0x0f, 0x84};
static const u1 kCheckAx[] = {0x48, 0x85, 0xc0, 0x0f, 0x85};
static const u1 kLeave[] = {0xc9};
static const u1 kTestPoll[] = {0x41, 0xf6};
static const u1 kCompareWithThreads[] = {0x49, 0x83, 0x7f};  // a byte with a word of the thread's
static const u1 kShortNop[] = {0x66, 0x90};
static const u1 kLongNop[] = {0x0f, 0x1f};      // and its operand
static const u1 kRetThenJump[] = {0xc3, 0xe9};  // to where an exception goes on
static const u1 kPopFrame8PopDx[] = {0x48, 0x83, 0xc4, 0x08, 0x5a};

// pop rcx, pop rdx
inline bool is_pop_of_target(const u1* at, const u1* end) {
  return at < end && (*at == 0x59 || *at == 0x5a);
}

inline bool is_jump_to_register(const u1* at, const u1* end) {
  if (at < end && *at == 0x41) at++;  // r8 to r15
  return end - at >= 2 && at[0] == 0xff && (at[1] & 0xf8) == 0xe0;
}

// The first place from `at` on where the bytes are these; `end` when there is none.
template <size_t N>
inline const u1* find_bytes(const u1* at, const u1* end, const u1 (&bytes)[N]) {
  while (at < end && !bytes_are(at, end, bytes)) at++;
  return at < end ? at : end;
}

// Behind its frame, a method that may use the reserved zone of the stack sees whether it has: up to
// where the jump goes that says no (MacroAssembler::reserved_stack_check).
inline bool is_at_check_of_reserved_zone(const u1* pc, const u1* begin, const u1* end) {
  const ptrdiff_t most = 64, compare = 7, jump = 6;
  for (const u1* at = pc - begin > most ? pc - most : begin; at < pc; at++) {
    if (!bytes_are(at, end, kComparePollWithSp32) || !bytes_are(at + compare, end, kJumpBelow) ||
        end - at < compare + jump) {
      continue;
    }
    int32_t distance = 0;
    memcpy(&distance, at + compare + sizeof(kJumpBelow), sizeof(distance));
    if (pc - (at + compare + jump) < distance) return true;
  }
  return false;
}

// Whether the frame is already taken down at pc: only the return address is left.
inline bool is_taken_down(const u1* pc, const u1* begin, const u1* end) {
  if (bytes_are(pc, end, kRet) || bytes_are(pc, end, kComparePollWithSp8) ||
      bytes_are(pc, end, kComparePollWithSp32) || is_at_check_of_reserved_zone(pc, begin, end)) {
    return true;
  }
  if (bytes_are(pc, end, kVzeroupper)) return bytes_are(pc + 3, end, kRet);
  if (bytes_are(pc, end, kJumpAbove)) {
    return (pc - begin >= 4 && bytes_are(pc - 4, end, kComparePollWithSp8)) ||
           (pc - begin >= 7 && bytes_are(pc - 7, end, kComparePollWithSp32));
  }
  // The return poll's slow path, behind the method's code.
  const size_t store = sizeof(kStoreR10ToThread) + 4;
  const auto loads_before = [&](size_t before, size_t load, bool relative) {
    if (pc - begin < static_cast<ptrdiff_t>(before)) return false;
    const u1* const at = pc - before;
    return (relative ? bytes_are(at, end, kLoadPcToR10)
                     : bytes_are(at, end, kLoadImmediateToR10)) &&
           bytes_are(at + load, end, kStoreR10ToThread) && bytes_are(at + load + store, end, kJump);
  };
  const auto in_slow_path = [&](size_t load, bool relative) {
    return loads_before(0, load, relative) || loads_before(load, load, relative) ||
           loads_before(load + store, load, relative);
  };
  return in_slow_path(sizeof(kLoadPcToR10) + 4, true) ||
         in_slow_path(sizeof(kLoadImmediateToR10) + 8, false);
}

// The same of a native method's code, which polls and looks for an exception of the native
// function's when its frame is gone already (SharedRuntime::generate_native_wrapper).
inline bool is_left(const u1* pc, const u1* begin, const u1* end) {
  const ptrdiff_t most = 64;
  for (const u1* at = pc - begin > most ? pc - most : begin; at < pc; at++) {
    if (!bytes_are(at, end, kLeave)) continue;
    const u1* const next = at + sizeof(kLeave);
    if (!bytes_are(next, end, kTestPoll) && !bytes_are(next, end, kCompareWithThreads)) continue;
    return pc <= find_bytes(next, end, kRetThenJump) + sizeof(kRet);
  }
  return false;
}

enum class Built { no, pushed, allocated, complete, unknown };

// Whether pc is at a jump that leaves the blob, the frame taken down before it: an exception goes
// on to the caller by way of a stub.
inline bool is_tail_jump(const CodeBlob* blob, const u1* pc) {
  const size_t size = 5;
  if (!bytes_are(pc, blob->code_end(), kJump) || pc == blob->code_begin() ||
      !bytes_are(pc - 1, pc, kPopFp) || static_cast<size_t>(blob->code_end() - pc) < size) {
    return false;
  }
  int32_t distance = 0;
  memcpy(&distance, pc + 1, sizeof(distance));
  const CodeBlob* const target = CodeCache::find_blob(const_cast<u1*>(pc + size + distance));
  return target != nullptr && target != blob;
}

// How far the frame is built at pc, by the instructions from the entry on.
inline Built how_far(const u1* entry, const u1* pc, const u1* end) {
  const u1* at = entry;
  bool pushed = false, allocated = false, saved = false;
  while (at < pc) {
    if (bytes_are(at, end, kBangStack)) {
      at += 7;
    } else if (bytes_are(at, end, kPushFp)) {
      pushed = true;
      at += 1;
    } else if (bytes_are(at, end, kMoveSpToFp)) {
      at += 3;
    } else if (bytes_are(at, end, kSubtractSp8)) {
      allocated = true;
      at += 4;
    } else if (bytes_are(at, end, kSubtractSp32)) {
      allocated = true;
      at += 7;
    } else if (bytes_are(at, end, kSaveFp8)) {
      saved = true;
      at += 5;
    } else if (bytes_are(at, end, kSaveFp32)) {
      saved = true;
      at += 8;
    } else if (*at == 0x90) {
      at += 1;
    } else if (bytes_are(at, end, kShortNop)) {
      at += 2;
    } else if (bytes_are(at, end, kLongNop) && end - at > 2) {
      // A long nop: its length is in its operand's form.
      const u1 form = at[2];
      const bool sib = (form & 7) == 4;
      at += 3 + (sib ? 1 : 0) + ((form >> 6) == 1 ? 1 : (form >> 6) == 2 ? 4 : 0);
    } else {
      return Built::unknown;
    }
    if (allocated && (pushed || saved)) return Built::complete;
  }
  if (at != pc) return Built::unknown;
  return allocated ? Built::allocated : pushed ? Built::pushed : Built::no;
}

inline bool begins_with_fp(const u1* begin, const u1* end) {
  return bytes_are(begin, end, kPushFpMoveSpToFp);
}

// Where a jump goes whose distance stands at `at`: forward, and not beyond the code.
inline const u1* jumped_to(const u1* at, const u1* end) {
  int32_t distance = -1;
  if (end - at >= static_cast<ptrdiff_t>(sizeof(distance))) memcpy(&distance, at, sizeof(distance));
  at += sizeof(distance);
  return distance >= 0 && end - at >= distance ? at + distance : end;
}

// Whether pc is behind an instruction that `begins` finds, on the way out: to a return, to a jump,
// or to the stub that goes on with an exception.
template <typename Begins>
inline bool is_on_way_out(const u1* pc, const u1* begin, const u1* end, Begins begins) {
#ifdef ASSERT
  const ptrdiff_t most = 64;  // with what stops HotSpot
#else
  const ptrdiff_t most = 24;
#endif
  const ptrdiff_t test = 3;
  for (const u1* at = pc - begin > most ? pc - most : begin; at < pc; at++) {
    if (!begins(at)) continue;
    const u1* next = at + 1;
    while (next < pc) {
      if (is_pop_of_target(next, end)) {
        next += 1;
      } else if (bytes_are(next, end, kStoreToThread)) {
        next += 11;
      } else if (bytes_are(next, end, kStoreToThread8)) {
        next += 8;
      } else if (bytes_are(next, end, kLoadFromThread) || bytes_are(next, end, kAddSp8)) {
        next += 4;
      } else if (bytes_are(next, end, kCheckAx)) {
        next = pc - next == test ? pc : jumped_to(next + sizeof(kCheckAx), end);
      } else {
        break;
      }
    }
    if (next == pc) return true;
  }
  return false;
}

// The frame is taken down by its frame pointer.
inline bool is_after_fp_restored(const u1* pc, const u1* begin, const u1* end) {
  const bool leaves = bytes_are(pc, end, kAddSp8) || bytes_are(pc, end, kRet) ||
                      bytes_are(pc, end, kJump) || is_jump_to_register(pc, end) ||
                      is_pop_of_target(pc, end) || bytes_are(pc, end, kStoreToThread) ||
                      bytes_are(pc, end, kStoreToThread8) || bytes_are(pc, end, kLoadFromThread);
  return leaves && is_on_way_out(pc, begin, end, [end](const u1* at) {
           return bytes_are(at, end, kPopFp) || bytes_are(at, end, kLeave);
         });
}

// The return address is popped, and there is nothing but a jump to come.
inline bool is_after_return_address_popped(const u1* pc, const u1* begin, const u1* end) {
  const bool jumps = is_jump_to_register(pc, end) || bytes_are(pc, end, kStoreToThread) ||
                     bytes_are(pc, end, kStoreToThread8) || bytes_are(pc, end, kLoadFromThread);
  const ptrdiff_t test = 3;
  const bool checks =
      bytes_are(pc, end, kCheckAx) || (pc - begin >= test && bytes_are(pc - test, end, kCheckAx));
  return (jumps || checks) &&
         is_on_way_out(pc, begin, end, [end](const u1* at) { return is_pop_of_target(at, end); });
}

// The static call stub at the end of compiled code, through which it calls a method that is
// interpreted: it loads rbx and jumps.
inline bool is_static_call_stub(const u1* pc, const u1* begin, const u1* end) {
  const size_t load = 10;
  if (bytes_are(pc, end, kLoadImmediateToBx)) return bytes_are(pc + load, end, kJump);
  return bytes_are(pc, end, kJump) && pc - begin >= static_cast<ptrdiff_t>(load) &&
         bytes_are(pc - load, end, kLoadImmediateToBx);
}

#endif  // CPU_X86_ASYNCINSTRUCTIONS_X86_HPP
