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

#include "prims/asyncStackWalker.hpp"

#include "asyncPushedWords_x86.hpp"
#include "asyncTransitions_x86.hpp"

#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"
#include "prims/asyncContinuations.hpp"
#include "prims/asyncMethods.hpp"
#include "prims/asyncUnwindTables.hpp"
#include "runtime/frame.hpp"
#include "runtime/javaThread.hpp"
#include "runtime/stubCodeGenerator.hpp"
#include "runtime/stubRoutines.hpp"

// What x86-64 knows of stubs and adapters that a thread was interrupted in, or that call a leaf.

static const int number_of_rdx = 2;

bool AsyncStackWalker::returns_to(uintptr_t word) const {
  return is_return_address(word) || is_leaf_return_address(word) ||
         AsyncUnwindTables::is_code(word) || noted_pc(word) != 0;
}

// Before the copy of arrays of any type stands a jump that its code takes where it fails
// (StubGenerator::generate_generic_copy).
const u1* AsyncStackWalker::stub_begin() const {
  const StubCodeDesc* const stub = StubCodeDesc::desc_for(reinterpret_cast<address>(_at.pc));
  if (stub == nullptr || _code != Code::stub) return _blob->code_begin();
  const size_t jump = 5;
  const u1* const begin = stub->begin();
  const u1* const end = _blob->code_end();
  return bytes_are(begin, end, kJump) && begins_with_fp(begin + jump, end) ? begin + jump : begin;
}

bool AsyncStackWalker::caller_by_fp(const u1* begin, Registers* caller) const {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const end = _blob->code_end();
  // A word may be pushed first: room for the return address that a poll has not left, or one that
  // stays below the return address.
  const bool of_poll = _blob->is_safepoint_stub() && bytes_are(begin, end, kPushBx);
  const bool has_cookie = _code == Code::stub && bytes_are(begin, end, kPushMinusOne);
  const bool moves_first = bytes_are(begin, end, kMoveDxToR11);
  const u1* const pushes = begin + (of_poll       ? sizeof(kPushBx)
                                    : has_cookie  ? sizeof(kPushMinusOne)
                                    : moves_first ? sizeof(kMoveDxToR11)
                                                  : 0);
  if (of_poll && pc == begin && _thread != nullptr) {
    // HotSpot's signal handler has sent it here from the poll; what stands at sp is the frame's.
    const uintptr_t polled_at = p2u(_thread->saved_exception_pc());
    if (!is_return_address(polled_at)) return false;
    *caller = {polled_at, _at.sp, _at.fp};
    return true;
  }
  const bool before = pc < begin;  // at a jump that is taken with the frame in place
  if (!begins_with_fp(pushes, end) || (pc < pushes && !before)) return false;
  if (_blob->is_deoptimization_stub() && !is_saving_registers(pc, begin, end)) return false;
  const int extra = has_cookie ? 1 : 0;
  uintptr_t fp = _at.fp, link = fp, return_pc = 0, slot = 0, top = 0;
  // Not behind an instruction that ends with the byte of leave.
  const bool jumps_on = bytes_are(pc, end, kJump) &&
                        (bytes_are(pc - 1, end, kLeave) || bytes_are(pc - 1, end, kPopFp)) &&
                        read(_at.sp, &top) && !returns_to(top);
  KeptSp kept;
  if (_code == Code::stub && kept.find(pc, begin, end)) {
    uintptr_t sp = _at.sp;
    if (!kept.restored() && (!read(_at.sp + kept.at(), &sp) || sp <= _at.sp)) return false;
    fp = sp + kept.pushed() * wordSize;
  }
  if (pc == pushes) {
    if (!of_poll && !has_cookie) return false;
    slot = _at.sp + extra * wordSize;
  } else if (pc < pushes + sizeof(kPushFpMoveSpToFp) && !before) {
    slot = _at.sp + (1 + extra) * wordSize;
    if (!read(_at.sp, &link)) return false;
  } else if (is_after_fp_restored(pc, begin, end) && !jumps_on) {
    if (!has_cookie || !bytes_are(pc, end, kAddSp8)) return false;
    slot = _at.sp + wordSize;
  } else {
    // More than the frame when there are words pushed on top of it.
    const int more = 8;
    const uintptr_t size = is_framed(_blob) ? (_blob->frame_size() + more) * wordSize : 4 * K;
    slot = fp + (frame::return_addr_offset + extra) * wordSize;
    if (fp < _at.sp || fp - _at.sp > size || !read(fp, &link)) return false;
  }
  if (!read(slot, &return_pc)) return false;
  const u1* const filled = find_bytes(pushes, end, kStoreBxAsReturnAddress);
  if (of_poll && pc <= filled && _thread != nullptr) return_pc = p2u(_thread->saved_exception_pc());
  if (!returns_to(return_pc)) return false;
  *caller = {return_pc, slot + wordSize, link};
  return true;
}

// Where a continuation's frames come back from the heap (StubGenerator::generate_cont_thaw). What has
// entered the continuation is the caller until they stand; then the stub goes to the innermost of
// them.
bool AsyncStackWalker::thawing_caller(Registers* caller) const {
  static const u1 to_frames[] = {0x48, 0x8b, 0xe3, 0x48,
                                 0x83, 0xec, 0x10};  // mov sp, bx; sub sp, 16
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const begin = stub_begin();
  const bool from_entry = begin == StubRoutines::cont_thaw();
  if (_thread == nullptr || begin == nullptr || (from_entry && pc == begin) ||
      (!from_entry && begin != StubRoutines::cont_returnBarrier() &&
       begin != StubRoutines::cont_returnBarrierExc())) {
    return false;
  }
  const u1* const at = find_bytes(begin, _blob->code_end(), to_frames);
  if (pc > at) {
    // On the way to them: sp, then where rbp is saved, then the return address.
    const bool popped = bytes_are(pc, _blob->code_end(), kRet);
    const uintptr_t frame = pc == at + 3 ? _at.sp : _at.sp + (popped ? 1 : 2) * wordSize;
    uintptr_t link = _at.fp, return_pc = 0;
    if ((!popped && !AsyncMethods::load(frame - 2 * wordSize, &link)) ||
        !AsyncMethods::load(frame - wordSize, &return_pc) || !is_return_address(return_pc)) {
      return false;
    }
    *caller = {return_pc, frame, link};
    return true;
  }
  const uintptr_t entry = p2u(_thread->last_continuation());
  if (entry < _at.sp || !on_stack(entry)) return false;
  AsyncContinuations::count(AsyncContinuations::speculative);
  *caller = {p2u(StubRoutines::cont_returnBarrier()), entry, entry + ContinuationEntry::size()};
  return true;
}

// C1's check of a subtype keeps four registers on the stack, then has room for some more
// (Runtime1::generate_code_for, C1StubId::slow_subtype_check_id).
bool AsyncStackWalker::subtype_check_caller(Registers* caller) const {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const begin = _blob->code_begin();
  const u1* const end = _blob->code_end();
  if (!bytes_are(begin, end, kPushDiSiCxAx)) return false;
  ptrdiff_t words = pc - begin;
  if (words > static_cast<ptrdiff_t>(sizeof(kPushDiSiCxAx))) words = sizeof(kPushDiSiCxAx);
  const u1 pop_ax = 0x58, pop_cx = 0x59, pop_si = 0x5e, pop_di = 0x5f;
  const u1 pops[] = {pop_ax, pop_cx, pop_si, pop_di, kRet[0]};
  for (size_t popped = 1; popped < sizeof(pops); popped++) {
    if (*pc == pops[popped] && pc[-1] == pops[popped - 1]) words = sizeof(pops) - 1 - popped;
  }
  const u1* const room = find_bytes(begin, end, kSubtractSp8);
  const u1* const gone = find_bytes(room, end, kLoadSpAboveSp8);
  if (room < pc && pc <= gone) words += room[3] / wordSize;
  uintptr_t return_pc = 0;
  const uintptr_t slot = _at.sp + words * wordSize;
  if (!read(slot, &return_pc) || !returns_to(return_pc)) return false;
  *caller = {return_pc, slot + wordSize, _at.fp};
  return true;
}

// Between interpreted and compiled code. A return address that is off the stack for a while still
// stands where it was, also below sp, where signals leave 128 bytes alone.
AsyncStackWalker::Registers AsyncStackWalker::adapter_caller() const {
  const AdapterDepth depth(reinterpret_cast<const u1*>(_at.pc), _blob);
  uintptr_t return_pc = 0;
  AsyncMethods::load(_at.sp + depth.return_at, &return_pc);
  if (!is_return_address(return_pc)) AsyncMethods::load(_at.sp + depth.or_return_at, &return_pc);
  return {return_pc, _at.sp + depth.caller_sp, _at.fp};
}

// From the interpreter to what a method handle or a member name stands for
// (methodHandles_x86.cpp). The caller's sp is in r13 all along. Linkers take their last argument
// away from below the return address; barriers push on top of that.
bool AsyncStackWalker::method_handle_caller(Registers* caller) const {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const end = _blob->code_end();
  const int number_of_r13 = 13, most_pushed = 64;
  uintptr_t sender_sp = 0, return_pc = 0;
  const bool sender_known =
      context_register(number_of_r13, &sender_sp) && sender_sp >= _at.sp && on_stack(sender_sp);
  const bool rax_popped = bytes_are(pc - 1, end, kPopAxPopBxPushAx);
  if (rax_popped || bytes_are(pc - 2, end, kPopAxPopBxPushAx)) {
    AsyncMethods::load(_at.sp - (rax_popped ? 1 : 2) * wordSize, &return_pc);
  } else if (sender_known && read(sender_sp - wordSize, &return_pc) &&
             is_return_address(return_pc)) {
    // Nothing is taken away.
  } else if (!sender_known || !read(sender_sp, &return_pc) || !is_return_address(return_pc)) {
    for (int i = 0; i < most_pushed && read(_at.sp + i * wordSize, &return_pc); i++) {
      if (is_return_address(return_pc)) break;
    }
  }
  const Place place(return_pc);
  if (!place.return_address || (!sender_known && place.blob_is_nmethod())) return false;
  const uintptr_t above = _at.sp + wordSize;
  *caller = {return_pc, sender_known && sender_sp > above ? sender_sp : above, _at.fp};
  return true;
}

// Where the blob that finds an exception's handler has taken its frame and the exception's pc off
// the stack; null when its code is another.
static const u1* after_pop_of_exception_pc(const CodeBlob* blob) {
  const u1* const end = blob->code_end();
  for (const u1* at = blob->code_begin(); at < end; at++) {
    if (bytes_are(at, end, kPopFrame8PopDx)) return at + sizeof(kPopFrame8PopDx);
  }
  return nullptr;
}

// C1's code calls the stub for an exception of a callee's from where it handles exceptions, which is
// described nowhere, with the pc of the call in rdx.
static uintptr_t described_pc(uintptr_t return_pc, uintptr_t rdx) {
  const CodeBlob* const blob = CodeCache::find_blob(reinterpret_cast<void*>(return_pc));
  const bool same = blob != nullptr && blob->is_nmethod() &&
                    CodeCache::find_blob(reinterpret_cast<void*>(rdx)) == blob;
  return same ? rdx : return_pc;
}

bool AsyncStackWalker::interrupted_stub_caller(Registers* caller) {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const end = _blob->code_end();
  uintptr_t top = 0, second = 0;
  if (!read(_at.sp, &top)) {
    fail(Stop::bad_stack);
    return true;
  }
  if (subtype_check_caller(caller) || thawing_caller(caller)) return true;
  if (_code == Code::framed_stub) {
    if (!interrupted_framed_stub_caller(caller)) return false;
    uintptr_t rdx = 0;
    if (_stop == Stop::none && !is_return_address(caller->pc) &&
        context_register(number_of_rdx, &rdx) && is_return_address(rdx)) {
      caller->pc = described_pc(caller->pc, rdx);
    }
    return true;
  }
  if (_blob->is_adapter_blob()) {
    *caller = adapter_caller();
    return true;
  }
  if (_blob->is_method_handles_adapter_blob()) {
    if (!method_handle_caller(caller)) fail(Stop::bad_frame);
    return true;
  }
  read(_at.sp + wordSize, &second);
  const Registers frameless = {top, _at.sp + wordSize, _at.fp};
  const Registers one_pushed = {second, _at.sp + 2 * wordSize, _at.fp};
  if (_blob->is_vtable_blob()) {
    *caller = frameless;
    return true;
  }
  // A leaf that HotSpot generated: most begin with push rbp, mov rbp, rsp.
  const u1* const begin = stub_begin();
  const bool aligned =
      bytes_are(pc, end, kAddSp8) || (pc - begin >= 4 && bytes_are(pc - 4, end, kSubtractSp8By8));
  uintptr_t below = 0;
  const bool jumps = is_after_return_address_popped(pc, begin, end);
  if (caller_by_fp(begin, caller)) return true;
  // Conversions of numbers (StubGenerator::generate_f2i_fixup) push registers, and have no frame.
  ptrdiff_t pushed = 0;
  if (bytes_are(begin, end, kPushAx) && bytes_pushed(begin, pc, end, &pushed) &&
      read(_at.sp + pushed, &below) && returns_to(below)) {
    *caller = {below, _at.sp + pushed + wordSize, _at.fp};
    return true;
  }
  if (aligned && returns_to(second)) {
    *caller = one_pushed;
  } else if (jumps && AsyncMethods::load(_at.sp - wordSize, &below) && returns_to(below)) {
    *caller = {below, _at.sp, _at.fp};
  } else if (returns_to(top)) {
    *caller = frameless;
  } else {
    fail(Stop::bad_frame);
  }
  return true;
}

// An exception is thrown to a frame that is deoptimised: the stub that replaces it makes room for the return
// address, saves all registers, and only then has it from the thread (SharedRuntime::generate_deopt_blob).
bool AsyncStackWalker::deoptimising_caller(Registers* caller) const {
  if (!_blob->is_deoptimization_stub() || _thread == nullptr) return false;
  const DeoptimizationBlob* const stub = _blob->as_deoptimization_blob();
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const end = _blob->code_end();
  const u1* const noted = stub->unpack_with_exception_in_tls();
  const u1* const pushes_fp = noted + sizeof(kPushZero);
  if (pc < stub->unpack_with_exception() || !bytes_are(noted, end, kPushZero) ||
      !begins_with_fp(pushes_fp, end) || pc > find_bytes(noted, end, kStoreDxAsReturnAddress)) {
    return false;
  }
  uintptr_t return_pc = 0, fp = _at.fp, slot = _at.sp - wordSize;
  if (pc != stub->unpack_with_exception()) {
    return_pc = p2u(_thread->exception_pc());
  } else {
    context_register(number_of_rdx, &return_pc);
  }
  if (pc == pushes_fp) {
    slot = _at.sp;
  } else if (pc > pushes_fp) {
    const bool is_set = pc >= pushes_fp + sizeof(kPushFpMoveSpToFp);
    const uintptr_t link_at = is_set ? _at.fp : _at.sp;
    if (!read(link_at, &fp)) return false;
    slot = link_at + wordSize;
  }
  if (!is_return_address(return_pc)) return false;
  *caller = {return_pc, slot + wordSize, fp};
  return true;
}

bool AsyncStackWalker::interrupted_framed_stub_caller(Registers* caller) {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const begin = _blob->code_begin();
  const u1* const end = _blob->code_end();
  if (deoptimising_caller(caller)) return true;
  uintptr_t top = 0, second = 0;
  read(_at.sp, &top);
  read(_at.sp + wordSize, &second);
  const Registers frameless = {top, _at.sp + wordSize, _at.fp};
  const Registers fp_pushed = {second, _at.sp + 2 * wordSize, top};
  // C1's stubs jump there without a frame, to have a bytecode executed again.
  const u1* const again = _blob->is_deoptimization_stub()
                              ? _blob->as_deoptimization_blob()->unpack_with_reexecution()
                              : nullptr;
  if (again != nullptr && (pc == again || pc == again + sizeof(kPushFp))) {
    const Registers& with = pc == again ? frameless : fp_pushed;
    if (returns_to(with.pc)) {
      *caller = with;
      return true;
    }
  }
  // A tail jump: the stub takes its return address off the stack too. It still stands below sp,
  // where signals leave 128 bytes alone.
  const u1* const popped = _blob->is_exception_stub() ? after_pop_of_exception_pc(_blob) : nullptr;
  if (is_pop_of_target(pc, end) && (pc + 1 == popped || is_jump_to_register(pc + 1, end)) &&
      returns_to(top)) {
    *caller = frameless;
    return true;
  }
  if (bytes_are(pc, end, kPopToTop)) {
    // A word is pushed on top of the whole frame, to be moved into it.
    const uintptr_t sp = _at.sp + (_blob->frame_size() + 1) * wordSize;
    uintptr_t link = 0, return_pc = 0;
    if (read(sp - wordSize, &return_pc) && read(sp - frame::sender_sp_offset * wordSize, &link) &&
        returns_to(return_pc)) {
      *caller = {return_pc, sp, link};
      return true;
    }
  }
  const bool jumps = pc > begin && is_jump_to_register(pc, end) && is_pop_of_target(pc - 1, end);
  uintptr_t below = 0;
  if ((jumps || (popped != nullptr && pc >= popped)) &&
      AsyncMethods::load(_at.sp - wordSize, &below) && returns_to(below)) {
    *caller = {below, _at.sp, _at.fp};
    return true;
  }
  if (_blob->is_exception_stub() && pc == begin) {
    // Jumped to, with the pc of the exception in rdx.
    uintptr_t exception_pc = 0;
    context_register(number_of_rdx, &exception_pc);
    if (!returns_to(exception_pc)) {
      fail(Stop::bad_frame);
    } else {
      *caller = {exception_pc, _at.sp, _at.fp};
    }
    return true;
  }
  if (bytes_are(pc, end, kRet) && returns_to(top)) {
    *caller = frameless;
    return true;
  }
  if (bytes_are(pc, end, kPopFp) && returns_to(second)) {
    *caller = fp_pushed;
    return true;
  }
  if (caller_by_fp(begin, caller)) return true;
  // C1's stub for an exception that another stub has met goes on in that one's frame
  // (Runtime1::generate_handle_exception).
  const u1* const most = end - begin > 32 ? begin + 32 : end;
  uintptr_t return_pc = 0, link = 0;
  if (find_bytes(begin, most, kLoadReturnAddressByFpToDx) != most && _at.fp >= _at.sp &&
      read(_at.fp, &link) && read(_at.fp + frame::return_addr_offset * wordSize, &return_pc) &&
      returns_to(return_pc)) {
    *caller = {return_pc, _at.fp + frame::sender_sp_offset * wordSize, link};
    return true;
  }
  const bool has_fp = begins_with_fp(begin, end) || begins_with_fp(begin + sizeof(kPushBx), end);
  if (has_fp && is_after_fp_restored(pc, begin, end) && returns_to(top)) {
    *caller = frameless;
    return true;
  }
  const Built built = how_far(begin, pc, end);
  uintptr_t by_size = 0;
  if (built != Built::no && built != Built::pushed &&
      read(_at.sp + (_blob->frame_size() - 1) * wordSize, &by_size) && returns_to(by_size)) {
    return false;
  }
  if (built != Built::no && top == _at.fp && returns_to(second)) {
    *caller = fp_pushed;
    return true;
  }
  if (returns_to(top)) {
    *caller = frameless;
    return true;
  }
  // While a blob that saves all registers takes its frame down: the last words it restores stand
  // below the frame pointer's.
  below = top;
  for (int i = 1; i <= 3; i++) {
    uintptr_t word = 0;
    if (!read(_at.sp + i * wordSize, &word)) break;
    if (returns_to(word)) {
      *caller = {word, _at.sp + (i + 1) * wordSize, below};
      return true;
    }
    below = word;
  }
  return false;
}

// C1's stub that finds the handler of an exception which leaves a method: the return address is all
// there is, but for a word that aligns the stack for the call and is dropped after it.
bool AsyncStackWalker::calling_stub_caller(Registers* caller) const {
  if (_blob->is_adapter_blob()) {
    *caller = adapter_caller();
    return true;
  }
  if (_blob->is_method_handles_adapter_blob()) return method_handle_caller(caller);
  if (thawing_caller(caller) || caller_by_fp(stub_begin(), caller)) return true;
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const uintptr_t at = _at.sp + (bytes_are(pc, _blob->code_end(), kAddSp8) ? wordSize : 0);
  uintptr_t return_pc = 0;
  if (!read(at, &return_pc) || !is_return_address(return_pc)) return false;
  *caller = {return_pc, at + wordSize, _at.fp};
  return true;
}
