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
#include "code/nmethod.hpp"
#include "interpreter/interpreter.hpp"
#include "prims/asyncMethods.hpp"
#include "runtime/frame.hpp"

#include <ucontext.h>

// What x86-64 knows of a frame that a thread was interrupted in while it was being built or taken
// down: the instructions around pc say how far that had come. They are ones that HotSpot's
// assembler emits for prologues and epilogues (macroAssembler_x86.cpp, c1_MacroAssembler_x86.cpp,
// x86_64.ad); what else is met falls back to asking which word is a return address.

// Registers, by the numbers that instructions have for them.
static const int number_of_rax = 0, number_of_rcx = 1, number_of_rbx = 3, number_of_r13 = 13;

// The interpreter's method entries: where frames of interpreted methods are built.
static const int kMaxEntries = 64;
static struct {
  uintptr_t begin;
  uintptr_t end;
} _method_entries[kMaxEntries];
static int _method_entry_count = 0;

// That of Reference.get, which is one of them.
static const u1* _reference_get_begin = nullptr;
static const u1* _reference_get_end = nullptr;

// -1 when pc is in none.
static int method_entry_of(uintptr_t pc) {
  for (int i = 0; i < _method_entry_count; i++) {
    if (pc >= _method_entries[i].begin && pc < _method_entries[i].end) return i;
  }
  return -1;
}
static bool in_method_entry(uintptr_t pc) { return method_entry_of(pc) >= 0; }

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
    if (kind == AbstractInterpreter::java_lang_ref_reference_get &&
        entry == codelet->code_begin()) {
      _reference_get_begin = codelet->code_begin();
      _reference_get_end = codelet->code_end();
    }
  }
}

// Where a context has a register.
static uintptr_t place_of(const void* ucontext, int index) {
  return p2u(ucontext) + offsetof(ucontext_t, uc_mcontext) + offsetof(mcontext_t, gregs) +
         index * sizeof(greg_t);
}

bool AsyncStackWalker::context_register(int number, uintptr_t* value) const {
  static const int indexes[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
  return _interrupted && _ucontext != nullptr &&
         AsyncMethods::load(place_of(_ucontext, indexes[number]), value);
}

// Returned to by a handler, the kernel's trampoline has the context on top of the stack.
bool AsyncStackWalker::pd_is_context(uintptr_t address, const Registers& registers) const {
  const void* const context = reinterpret_cast<const void*>(address);
  uintptr_t pc = 0, sp = 0, fp = 0;
  return read(place_of(context, REG_RIP), &pc) && read(place_of(context, REG_RSP), &sp) &&
         read(place_of(context, REG_RBP), &fp) && pc == registers.pc && sp == registers.sp &&
         fp == registers.fp;
}

bool AsyncStackWalker::pd_may_be_gone() const {
  return is_taken_down(reinterpret_cast<const u1*>(_at.pc), _blob->code_begin(), _blob->code_end());
}

uintptr_t AsyncStackWalker::interrupted_bcp() const {
  uintptr_t bcp = 0;
  if (!in_method_entry(_at.pc)) context_register(number_of_r13, &bcp);
  return bcp;
}

bool AsyncStackWalker::pd_follows_call(const u1* pc, const u1* begin) {
  const ptrdiff_t before = pc - begin;
  if (before >= 5 && pc[-5] == 0xe8) return true;                   // call rel32
  return before >= 2 && pc[-2] == 0xff && (pc[-1] & 0xf8) == 0xd0;  // call register
}

// With its operand, from the byte on that says that it is one.
static int size_of_indirect_call(const u1* at) {
  const int mode = at[1] >> 6, base = at[1] & 7, scaled = 4, none = 5;
  if (mode == 3) return 2;
  const int size = base == scaled ? 3 : 2;
  if (mode != 0) return size + (mode == 1 ? 1 : 4);
  const bool displaced = base == none || (base == scaled && (at[2] & 7) == none);
  return size + (displaced ? 4 : 0);
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
    if (end[-length] == 0xff && (end[1 - length] & 0x38) == 0x10 &&
        size_of_indirect_call(end - length) == length) {
      return true;  // call r/m64
    }
  }
  return false;
}

// In a search in strings of C2's: what is on top of the frame is told by a word that it keeps, and else by
// where there is a return address, if there is one such place.
bool AsyncStackWalker::has_kept_sp(Registers* caller) {
  if (!_blob->as_nmethod()->is_compiled_by_c2()) return false;
  uintptr_t in_rcx = 0, on_top = 0;
  const bool has_rcx = context_register(number_of_rcx, &in_rcx);
  read(_at.sp, &on_top);
  const auto words_to = [this](uintptr_t kept) { return (kept - _at.sp) / wordSize; };
  // The code is searched only where it may be one.
  const bool may_be_kept =
      words_to(in_rcx) <= StringSearch::most_words || words_to(on_top) <= StringSearch::most_words;
  StringSearch search;
  if ((has_rcx && !may_be_kept) ||
      !search.find(reinterpret_cast<const u1*>(_at.pc), _blob->code_begin(), _blob->code_end())) {
    return false;
  }
  const uintptr_t kept = search.has_pushed() ? on_top : in_rcx;
  const bool known = search.has_pushed() || has_rcx;
  int found = 0;
  for (uintptr_t words = 0; words <= StringSearch::most_words; words++) {
    if ((known && kept != _at.sp + words * wordSize) ||
        (!search.has_pushed() && !search.may_be(words))) {
      continue;
    }
    const uintptr_t sp = _at.sp + (words + _blob->frame_size()) * wordSize;
    Registers to = {0, sp, 0};
    if (!read(sp - wordSize, &to.pc) || !read(sp - frame::sender_sp_offset * wordSize, &to.fp) ||
        (known ? !is_return_address(to.pc) : !has_caller(to))) {
      continue;
    }
    *caller = to;
    found++;
  }
  if (found > 1) fail(Stop::bad_frame);
  return found > 0;
}

// As string comparison does, and C1 for the check of a subtype (C2_MacroAssembler::string_compare,
// LIR_Assembler::emit_arraycopy).
bool AsyncStackWalker::has_pushed_words(Registers* caller) const {
  const int most = 4;
  const uintptr_t sp = _at.sp + _blob->frame_size() * wordSize;
  uintptr_t below = 0, word = 0;
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const bool complete = _blob->is_frame_complete_at(const_cast<u1*>(pc));
  int pushed = complete ? words_pushed_for_barrier(pc, _blob->code_begin(), _blob->code_end()) : 0;
  if (pushed == 0) pushed = words_pushed_for_check(pc, _blob->code_begin(), _blob->code_end());
  if (pushed != 0) {
    uintptr_t caller_sp = sp + pushed * wordSize;
    // What looked like one push more may be the end of another instruction.
    if (read(caller_sp - wordSize, &word) && !is_return_address(word)) caller_sp -= wordSize;
    if (!read(caller_sp - wordSize, &word) ||
        !read(caller_sp - frame::sender_sp_offset * wordSize, &below)) {
      return false;
    }
    *caller = {word, caller_sp, below};
    return true;
  }
  if (!read(sp - wordSize, &below) || is_return_address(below)) return false;
  for (int i = 0; i < most; i++) {
    if (!read(sp + i * wordSize, &word)) return false;
    if (is_return_address(word)) {
      *caller = {word, sp + (i + 1) * wordSize, below};
      return true;
    }
    below = word;
  }
  return false;
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
  if (nm->frame_size() <= 0) {
    // But for what a barrier has pushed.
    ptrdiff_t pushed = 0;
    *caller = frameless;
    if (bytes_pushed(begin, pc, end, &pushed)) {
      caller->sp += pushed;
      read(_at.sp + pushed, &caller->pc);
    }
    return true;
  }

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
  // Native methods may do without a frame for a while (their intrinsics' fast paths).
  const size_t pushes = sizeof(kPushFpMoveSpToFp);
  if (pc - begin >= static_cast<ptrdiff_t>(pushes) && begins_with_fp(pc - pushes, end) &&
      is_return_address(second)) {
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
      return has_kept_sp(caller) || has_pushed_words(caller);
    case Built::unknown:
      break;
  }
  if (nm->is_frame_complete_at(reinterpret_cast<address>(_at.pc))) {
    return has_kept_sp(caller) || has_pushed_words(caller);
  }
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

bool AsyncStackWalker::between_frames(Registers* caller) {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  if (_code == Code::interpreter) {
    if (loads_referent(caller)) return true;
    const size_t call = 5;
    const bool calls = pc[-static_cast<ptrdiff_t>(call)] == 0xe8;
    if (!_interrupted && !calls) return false;
    return leaves_interpreted(caller) || enters_interpreted(caller);
  }
  if (_code != Code::compiled || !_interrupted) return false;
  const nmethod* const nm = _blob->as_nmethod();
  uintptr_t top = 0;
  if (!nm->stub_contains(const_cast<u1*>(pc)) ||
      !is_static_call_stub(pc, nm->stub_begin(), nm->stub_end()) || !read(_at.sp, &top) ||
      !is_return_address(top)) {
    return false;
  }
  *caller = {top, _at.sp + wordSize, _at.fp};
  return true;
}

// Reference.get's entry has no frame, and its method only until it loads what is referred to. Then barriers
// push registers, and call. An adapter from compiled code has made room for the one argument, and for as
// much again, behind the return address.
bool AsyncStackWalker::loads_referent(Registers* caller) {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  uintptr_t method = 0, return_pc = 0;
  ptrdiff_t pushed = 0;
  if (pc < _reference_get_begin || pc >= _reference_get_end ||
      (context_register(number_of_rbx, &method) && AsyncMethods::is_method(method)) ||
      !bytes_pushed(_reference_get_begin, pc, _reference_get_end, &pushed)) {
    return false;
  }
  const uintptr_t slot = _at.sp + pushed;
  const bool has_return = read(slot, &return_pc);
  const Place place(return_pc);
  const uintptr_t sp = slot + (place.blob_is_nmethod() ? 3 : 1) * wordSize;
  if (!has_return || !place.return_address || !on_stack(sp)) {
    fail(Stop::bad_frame);
  } else {
    *caller = {return_pc, sp, _at.fp};
  }
  return true;
}

// Without registers: what an interpreted frame had stands where it was, also below sp, where signals leave
// 128 bytes alone. Its link is in fp already.
bool AsyncStackWalker::load_left_frame(uintptr_t return_address, LeftFrame* frame) const {
  const uintptr_t fp = return_address - frame::return_addr_offset * wordSize;
  const uintptr_t sender_at = fp + frame::interpreter_frame_sender_sp_offset * wordSize;
  uintptr_t link = 0;
  return AsyncMethods::load(return_address, &frame->return_pc) && AsyncMethods::load(fp, &link) &&
         AsyncMethods::load(sender_at, &frame->sender_sp) && link == _at.fp;
}

// The same when sp is the caller's. Other words there are the method's arguments and locals.
bool AsyncStackWalker::find_left_frame(LeftFrame* frame) const {
  const uintptr_t kept_by_signals = 128, fixed = 2 * wordSize;
  for (uintptr_t below = wordSize; below + fixed <= kept_by_signals; below += wordSize) {
    if (load_left_frame(_at.sp - below, frame) && frame->sender_sp == _at.sp &&
        is_return_address(frame->return_pc)) {
      return true;
    }
  }
  return false;
}

bool AsyncStackWalker::leaves_interpreted(Registers* caller) {
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  Leaving leaving;
  if (!leaving.find(pc, Interpreter::code()->code_start(), Interpreter::code()->code_end())) {
    return false;
  }
  uintptr_t return_pc = 0, sp = 0;
  const int kept = leaving.return_register(), sender = leaving.sender_register();
  LeftFrame left = {};
  if (kept < 0) {
    read(_at.sp + leaving.return_offset(), &return_pc);
  } else if (!context_register(kept, &return_pc)) {
    // Where it was popped from.
    if (!leaving.moved()) {
      AsyncMethods::load(_at.sp - wordSize, &return_pc);
    } else if (leaving.had_frame() && find_left_frame(&left)) {
      return_pc = left.return_pc;
    }
  }
  // Interpreted callers are found by fp.
  const Place place(return_pc);
  if (sender < 0) {
    sp = _at.sp + leaving.above();
  } else if (!context_register(sender, &sp)) {
    if (!place.blob_is_nmethod()) {
      sp = _at.sp + wordSize;
    } else if (leaving.had_frame() &&
               load_left_frame(_at.sp + (kept < 0 ? leaving.return_offset() : -wordSize), &left)) {
      sp = left.sender_sp;
    }
  }
  // Method handle linkers pop an argument, as caller_of_interpreted says.
  if (sp == _at.sp - wordSize) sp = _at.sp;
  if (!place.return_address || sp < _at.sp || !on_stack(sp)) {
    fail(Stop::bad_frame);
  } else {
    *caller = {return_pc, sp, _at.fp};
  }
  return true;
}

// The return address is on top of the stack, then (while locals are pushed over it) in a register,
// then below them again. The caller's sp is in a register until the frame has it: compiled callers
// need it, and are asked how many arguments they pass; others are found by fp. Entries of functions that have
// stubs (Math.sin) push nothing, and call one.
bool AsyncStackWalker::enters_interpreted(Registers* caller) {
  const int entry = method_entry_of(_at.pc);
  if ((_interrupted && _ucontext != nullptr) || entry < 0) return false;
  const u1* const pc = reinterpret_cast<const u1*>(_at.pc);
  const u1* const begin = reinterpret_cast<const u1*>(_method_entries[entry].begin);
  const u1* const end = reinterpret_cast<const u1*>(_method_entries[entry].end);
  const u1* const pushes_fp = find_bytes(begin, end, kPushFpMoveSpToFp);
  const u1* const has_fp = pushes_fp + sizeof(kPushFpMoveSpToFp);
  const bool frameless = pushes_fp == end;
  if (!_interrupted && !frameless) return false;
  const u1* popped = frameless ? end : find_bytes(begin, pushes_fp, kPopAxLoadLocals);
  if (popped == pushes_fp && !frameless) popped = find_bytes(begin, pushes_fp, kPopAx);
  const bool has_locals = pc >= pushes_fp;
  uintptr_t return_pc = 0, link = _at.fp, sp = 0, top = 0, slot = _at.sp;
  if (frameless && bytes_are(pc, end, kAddSp8)) slot += wordSize;  // aligned for the call
  read(_at.sp, &top);
  if (pc >= has_fp) {
    if (_at.sp <= _at.fp + frame::interpreter_frame_method_offset * wordSize) return false;
    slot = _at.fp + frame::return_addr_offset * wordSize;
    read(_at.fp, &link);
    read(_at.fp + frame::interpreter_frame_sender_sp_offset * wordSize, &sp);
  } else if (pc > pushes_fp) {
    slot = _at.sp + wordSize;
    read(_at.sp, &link);
  } else if (pc != pushes_fp && pc > popped) {
    // Unless a local is pushed over it already.
    const bool is_there = pc < find_bytes(popped, pushes_fp, kPushZero) || top != 0;
    slot = is_there ? _at.sp - wordSize : 0;
  }
  if (slot != 0) AsyncMethods::load(slot, &return_pc);
  const Place place(return_pc);
  if (sp == 0) {
    sp = place.blob_is_nmethod() ? above_arguments(place, slot + wordSize, has_locals)
                                 : _at.sp + 2 * wordSize;
  }
  if (!place.return_address || sp <= _at.sp || !on_stack(sp)) {
    fail(Stop::bad_frame);
  } else {
    *caller = {return_pc, sp, link};
  }
  return true;
}

bool AsyncStackWalker::interrupted_interpreted(uintptr_t* method, Registers* caller) const {
  uintptr_t in_rbx = 0, in_rax = 0, sender_sp = 0;
  if (!in_method_entry(_at.pc) || !context_register(number_of_rbx, &in_rbx) ||
      !context_register(number_of_rax, &in_rax) || !context_register(number_of_r13, &sender_sp)) {
    return false;
  }
  // At the entry rbx is the method, r13 the caller's sp; the return address is on top of the stack,
  // then (while locals are pushed) in rax, then below the locals again.
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
