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

#include "asyncInstructions_x86.hpp"

#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"
#include "code/nmethod.hpp"
#include "interpreter/interpreter.hpp"
#include "prims/asyncMethods.hpp"
#include "prims/asyncUnwindTables.hpp"
#include "runtime/frame.hpp"
#include "runtime/stubCodeGenerator.hpp"

#include <ucontext.h>

// What x86-64 knows of a frame that a thread was interrupted in while it was being built or taken
// down: the instructions around pc say how far that had come. They are ones that HotSpot's
// assembler emits for prologues and epilogues (macroAssembler_x86.cpp, c1_MacroAssembler_x86.cpp,
// x86_64.ad); what else is met falls back to asking which word is a return address.

// The interpreter's method entries: where frames of interpreted methods are built.
static const int kMaxEntries = 64;
static struct {
  uintptr_t begin;
  uintptr_t end;
} _method_entries[kMaxEntries];
static int _method_entry_count = 0;

static bool in_method_entry(uintptr_t pc) {
  for (int i = 0; i < _method_entry_count; i++) {
    if (pc >= _method_entries[i].begin && pc < _method_entries[i].end) return true;
  }
  return false;
}

void AsyncStackWalker::pd_initialize() {
  for (int kind = 0; kind < AbstractInterpreter::number_of_method_entries; kind++) {
    const address entry =
        Interpreter::entry_for_kind(static_cast<AbstractInterpreter::MethodKind>(kind));
    if (entry == nullptr || in_method_entry(p2u(entry)) || _method_entry_count == kMaxEntries) {
      continue;
    }
    const InterpreterCodelet* const codelet = Interpreter::codelet_containing(entry);
    if (codelet == nullptr) continue;
    _method_entries[_method_entry_count++] = {p2u(codelet->code_begin()), p2u(codelet->code_end())};
  }
}

static uintptr_t register_of(const void* ucontext, int index) {
  return static_cast<uintptr_t>(static_cast<const ucontext_t*>(ucontext)->uc_mcontext.gregs[index]);
}

uintptr_t AsyncStackWalker::interrupted_bcp() const {
  if (_ucontext == nullptr || in_method_entry(_at.pc)) return 0;
  return register_of(_ucontext, REG_R13);
}

bool AsyncStackWalker::pd_follows_call(const u1* pc, const u1* begin) {
  const ptrdiff_t before = pc - begin;
  if (before >= 5 && pc[-5] == 0xe8) return true;                   // call rel32
  return before >= 2 && pc[-2] == 0xff && (pc[-1] & 0xf8) == 0xd0;  // call register
}

bool AsyncStackWalker::pd_may_follow_c_call(uintptr_t pc) {
  u1 before[8];
  const uintptr_t begin = align_down(pc - sizeof(before), sizeof(uintptr_t));
  uintptr_t words[2] = {0, 0};
  if (!AsyncMethods::load(begin, &words[0]) ||
      !AsyncMethods::load(begin + sizeof(uintptr_t), &words[1]))
    return true;
  memcpy(before, reinterpret_cast<const u1*>(words) + (pc - sizeof(before) - begin),
         sizeof(before));
  const u1* const end = before + sizeof(before);
  if (end[-5] == 0xe8) return true;  // call rel32
  for (int length = 2; length <= 7; length++) {
    if (end[-length] == 0xff && (end[1 - length] & 0x38) == 0x10) return true;  // call r/m64
  }
  return false;
}

// Whether a word is pushed on top of the whole frame, as string comparison does for a while
// (C2_MacroAssembler::string_compare).
bool AsyncStackWalker::has_pushed_word(Registers* caller) const {
  const uintptr_t sp = _at.sp + _blob->frame_size() * wordSize;
  uintptr_t below = 0, return_pc = 0;
  if (!read(sp - wordSize, &below) || is_return_address(below) || !read(sp, &return_pc) ||
      !is_return_address(return_pc)) {
    return false;
  }
  *caller = {return_pc, sp + wordSize, below};
  return true;
}

bool AsyncStackWalker::interrupted_compiled_caller(Registers* caller) {
  const nmethod* const nm = _blob->as_nmethod();
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const begin = nm->code_begin();
  const u1* const end = nm->code_end();
  uintptr_t top = 0, second = 0;
  const bool readable = read(_at.sp, &top) && read(_at.sp + wordSize, &second);
  if (!readable) return false;
  const Registers frameless = {top, _at.sp + wordSize, _at.fp};
  const Registers fp_pushed = {second, _at.sp + 2 * wordSize, top};

  const bool gone = is_taken_down(pc, begin, end) || is_tail_jump(nm, pc) ||
                    (nm->is_native_method() && is_left(pc, begin, end));
  if (gone && is_return_address(top)) {
    *caller = frameless;
    return true;
  }
  if (bytes_are(pc, end, kPopFp) && is_return_address(second)) {
    *caller = fp_pushed;
    return true;
  }
  const u1* entry = nm->verified_entry_point();
  if (nm->is_osr_method() && pc >= nm->osr_entry()) entry = nm->osr_entry();
  Built built = Built::unknown;
  if (pc <= entry && pc >= nm->entry_point()) {
    built = Built::no;  // the inline cache's check
  } else if (pc > entry && pc - entry < 64) {
    built = how_far(entry, pc, end);
  }
  switch (built) {
    case Built::no:
      if (!is_return_address(top)) break;
      *caller = frameless;
      return true;
    case Built::pushed:
      if (!is_return_address(second)) break;
      *caller = fp_pushed;
      return true;
    case Built::allocated: {
      // The frame pointer is not saved yet, so it still is the caller's.
      const uintptr_t sp = _at.sp + nm->frame_size() * wordSize;
      uintptr_t return_pc = 0;
      if (!read(sp - wordSize, &return_pc) || !is_return_address(return_pc)) break;
      *caller = {return_pc, sp, _at.fp};
      return true;
    }
    case Built::complete:
      return has_pushed_word(caller);
    case Built::unknown:
      break;
  }
  if (nm->is_frame_complete_at(reinterpret_cast<address>(_at.pc))) return has_pushed_word(caller);
  if (is_return_address(top)) {
    *caller = frameless;
    return true;
  }
  if (top == _at.fp && is_return_address(second)) {
    *caller = fp_pushed;
    return true;
  }
  return false;
}

// Between interpreted and compiled code (sharedRuntime_x86_64.cpp). The adapter from interpreted
// code stands first, and its caller's sp is in r13 all the time; in that from compiled code once it
// is put there. The return address is on top of the stack or, while arguments are moved, in rax.
AsyncStackWalker::Registers AsyncStackWalker::interrupted_adapter_caller(uintptr_t top) const {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const end = _blob->code_end();
  const u1* const from_interpreter_end = find_bytes(_blob->code_begin(), end, kJumpToR11);
  const u1* const sender_sp_load = find_bytes(from_interpreter_end, end, kLoadSenderSpToR13);
  const uintptr_t r13 = register_of(_ucontext, REG_R13);
  if (pc > from_interpreter_end && pc <= sender_sp_load && sender_sp_load != end) {
    // Before it calls to have its caller patched, the adapter keeps its own sp in r13.
    const u1* const kept = find_bytes(from_interpreter_end, sender_sp_load, kMoveSpToR13);
    const u1* const restored = find_bytes(kept, sender_sp_load, kMoveR13ToSp);
    uintptr_t kept_top = 0;
    if (pc > kept && pc <= restored && r13 >= _at.sp && on_stack(r13) && read(r13, &kept_top)) {
      return {kept_top, r13 + wordSize, _at.fp};
    }
    return {top, _at.sp + wordSize, _at.fp};
  }
  const uintptr_t sp = r13 > _at.sp && on_stack(r13) ? r13 : _at.sp + wordSize;
  return {is_return_address(top) ? top : register_of(_ucontext, REG_RAX), sp, _at.fp};
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

bool AsyncStackWalker::interrupted_stub_caller(Registers* caller) {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const end = _blob->code_end();
  uintptr_t top = 0, second = 0;
  if (!read(_at.sp, &top)) {
    fail(Stop::bad_stack);
    return true;
  }
  read(_at.sp + wordSize, &second);
  const Registers frameless = {top, _at.sp + wordSize, _at.fp};
  const Registers fp_pushed = {second, _at.sp + 2 * wordSize, top};
  const auto returns_to = [this](uintptr_t word) {
    return is_return_address(word) || is_leaf_return_address(word) ||
           AsyncUnwindTables::is_code(word) || noted_pc(word) != 0;
  };

  if (_blob->is_adapter_blob() && _ucontext != nullptr) {
    *caller = interrupted_adapter_caller(top);
    return true;
  }
  if (_blob->is_vtable_blob()) {
    *caller = frameless;
    return true;
  }
  if (is_framed(_blob)) {
    // A tail jump: the stub takes its return address off the stack too. It still stands below sp,
    // where signals leave 128 bytes alone.
    const u1* const popped =
        _blob->is_exception_stub() ? after_pop_of_exception_pc(_blob) : nullptr;
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
    const bool jumps =
        pc > _blob->code_begin() && is_jump_to_register(pc, end) && is_pop_of_target(pc - 1, end);
    uintptr_t below = 0;
    if ((jumps || (popped != nullptr && pc >= popped)) &&
        AsyncMethods::load(_at.sp - wordSize, &below) && returns_to(below)) {
      *caller = {below, _at.sp, _at.fp};
      return true;
    }
    if (_blob->is_exception_stub() && pc == _blob->code_begin()) {
      // Jumped to, with the pc of the exception in rdx.
      const uintptr_t exception_pc = _ucontext == nullptr ? 0 : register_of(_ucontext, REG_RDX);
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
    const Built built = how_far(_blob->code_begin(), pc, end);
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

  // A leaf that HotSpot generated: most begin with push rbp, mov rbp, rsp.
  const u1* begin = _blob->code_begin();
  const StubCodeDesc* const stub = StubCodeDesc::desc_for(reinterpret_cast<address>(_at.pc));
  if (stub != nullptr) begin = stub->begin();
  const bool has_fp = bytes_are(begin, end, kPushFp) && bytes_are(begin + 1, end, kMoveSpToFp);
  if (has_fp && pc > begin && pc < begin + 4 && returns_to(second)) {
    *caller = fp_pushed;
    return true;
  }
  if (has_fp && pc >= begin + 4 && !bytes_are(pc, end, kRet)) {
    uintptr_t link = 0, return_pc = 0;
    if (_at.fp >= _at.sp && read(_at.fp, &link) &&
        read(_at.fp + frame::return_addr_offset * wordSize, &return_pc) && returns_to(return_pc)) {
      *caller = {return_pc, _at.fp + frame::sender_sp_offset * wordSize, link};
      return true;
    }
  }
  if (returns_to(top)) {
    *caller = frameless;
    return true;
  }
  fail(Stop::bad_frame);
  return true;
}

// C1's stub that finds the handler of an exception which leaves a method: the return address is all
// there is, but for a word that aligns the stack for the call and is dropped after it.
bool AsyncStackWalker::calling_stub_caller(Registers* caller) const {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const uintptr_t at = _at.sp + (bytes_are(pc, _blob->code_end(), kAddSp8) ? wordSize : 0);
  uintptr_t return_pc = 0;
  if (!read(at, &return_pc) || !is_return_address(return_pc)) return false;
  *caller = {return_pc, at + wordSize, _at.fp};
  return true;
}

bool AsyncStackWalker::interrupted_interpreted(uintptr_t* method, Registers* caller) const {
  if (_ucontext == nullptr || !in_method_entry(_at.pc)) return false;
  // At the entry rbx is the method, r13 the caller's sp; the return address is on top of the stack,
  // then (while locals are pushed) in rax, then below the locals again.
  const uintptr_t in_rbx = register_of(_ucontext, REG_RBX);
  const uintptr_t in_rax = register_of(_ucontext, REG_RAX);
  const uintptr_t sender_sp = register_of(_ucontext, REG_R13);
  uintptr_t top = 0, second = 0;
  if (!AsyncMethods::is_method(in_rbx) || !read(_at.sp, &top)) return false;
  read(_at.sp + wordSize, &second);
  const bool sender_known = sender_sp >= _at.sp && on_stack(sender_sp);
  *method = in_rbx;
  // What stands on the stack is below the caller's sp.
  if (is_return_address(top) && sender_known && sender_sp > _at.sp) {
    *caller = {top, sender_sp, _at.fp};
    return true;
  }
  if (top == _at.fp && is_return_address(second) && sender_known && sender_sp > _at.sp + wordSize) {
    *caller = {second, sender_sp, _at.fp};
    return true;
  }
  // The caller's frame pointer is above its sp, the entered method's below.
  if (is_return_address(in_rax) && sender_known && _at.fp >= sender_sp) {
    *caller = {in_rax, sender_sp, _at.fp};
    return true;
  }
  // The frame pointer is set, the fixed part below it is being pushed.
  uintptr_t link = 0, return_pc = 0;
  const intptr_t pushed = static_cast<intptr_t>(_at.fp - _at.sp) / wordSize;
  if (_at.fp >= _at.sp && pushed <= -frame::interpreter_frame_initial_sp_offset &&
      read(_at.fp, &link) && read(_at.fp + frame::return_addr_offset * wordSize, &return_pc) &&
      is_return_address(return_pc)) {
    uintptr_t sp = sender_sp;
    if (pushed >= -frame::interpreter_frame_sender_sp_offset) {
      read(_at.fp + frame::interpreter_frame_sender_sp_offset * wordSize, &sp);
    }
    if (sp <= _at.fp) return false;
    *caller = {return_pc, sp, link};
    return true;
  }
  if (is_return_address(in_rax) && sender_known) {
    *caller = {in_rax, sender_sp, _at.fp};
    return true;
  }
  return false;
}
