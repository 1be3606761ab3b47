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

#include "classfile/vmSymbols.hpp"
#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"
#include "code/debugInfo.hpp"
#include "code/nmethod.inline.hpp"
#include "code/pcDesc.hpp"
#include "interpreter/bytecodes.hpp"
#include "oops/constantPool.inline.hpp"
#include "oops/cpCache.inline.hpp"
#include "oops/method.inline.hpp"
#include "oops/resolvedMethodEntry.hpp"
#include "prims/asyncContinuations.hpp"
#include "prims/asyncMethods.hpp"
#include "prims/asyncUnwindTables.hpp"
#include "runtime/continuation.hpp"
#include "runtime/continuationEntry.hpp"
#include "runtime/frame.hpp"
#include "runtime/javaFrameAnchor.hpp"
#include "runtime/javaThread.hpp"
#include "runtime/signature.hpp"

// Goes to a caller, if it can be one.
bool AsyncStackWalker::arrive(const Registers& caller) {
  Registers to = caller;
  // What was interrupted may have nothing left on the stack; it is the first frame, so that sp
  // still bounds the steps. Nor has the stub that thaws a continuation, which its entry has called.
  const bool frozen = Continuation::is_return_barrier_entry(reinterpret_cast<address>(to.pc));
  const bool may_stay = _interrupted || frozen || to.pc == p2u(ContinuationEntry::entry_pc());
  const bool advances = to.sp > _at.sp || (may_stay && to.sp == _at.sp);
  if (!advances || !on_stack(to.sp)) return fail(Stop::bad_stack);
  if (frozen) {
    AsyncContinuations::count(AsyncContinuations::barriers);
    if (!continuation_entry(&to)) return false;
    if (_gives_frozen && enter_frozen(to)) return true;
    _left_out_frozen = _left_out_frozen || _stop == Stop::none;
    if (_stop != Stop::none) return false;
  }
  if (_returned_to.pc != to.pc) _returned_to = Place(to.pc);
  Place place = _returned_to;
  if (_java_done && place.in_code_cache()) return fail(Stop::bad_pc);
  if (!place.return_address) {
    const uintptr_t noted = noted_pc(to.pc);
    if (noted != 0) {
      to.pc = noted;
      place = Place(noted);
    } else if (!may_return_from_c(to.pc)) {
      return fail(Stop::bad_pc);
    }
  }
  _at = to;
  _low = to.sp;
  _interrupted = false;
  _frozen = frozen;
  return classify(place);
}

bool AsyncStackWalker::continuation_entry(Registers* to) {
  if (_thread == nullptr) return fail(Stop::bad_pc);
  uintptr_t entry = p2u(_thread->last_continuation());
  for (int i = 0; entry <= _at.sp && entry != to->sp; i++) {
    if (i == kMaxContinuations || entry == 0 ||
        !AsyncMethods::load(entry + in_bytes(ContinuationEntry::parent_offset()), &entry)) {
      AsyncContinuations::count(AsyncContinuations::entries_missing);
      return fail(Stop::bad_pc);
    }
  }
  if (!on_stack(entry)) return fail(Stop::bad_stack);
  *to = {p2u(ContinuationEntry::entry_pc()), entry, entry + ContinuationEntry::size()};
  return true;
}

// The caller of a frame that is whole, by the kind of its code.

bool AsyncStackWalker::caller_of_interpreted() {
  uintptr_t link = 0, pc = 0, sender_sp = 0;
  const uintptr_t fp = _at.fp;
  if (!read(fp, &link) || !read(fp + frame::return_addr_offset * wordSize, &pc) ||
      !read(fp + frame::interpreter_frame_sender_sp_offset * wordSize, &sender_sp)) {
    return fail(Stop::bad_frame);
  }
  // The callee's locals extend the caller's frame downwards. Method handle linkers pop an argument,
  // so that sp may be one word above.
  const uintptr_t raw_sp = fp + frame::sender_sp_offset * wordSize;
  if (sender_sp < raw_sp - wordSize) return fail(Stop::bad_frame);
  return arrive({pc, sender_sp, link});
}

// The caller of a frame with a known size: the return address is its uppermost word, and below it
// stands the frame pointer, which all generated code saves there.
bool AsyncStackWalker::caller_of_framed() {
  const uintptr_t sp = _at.sp + _blob->frame_size() * wordSize;
  uintptr_t link = 0, pc = 0;
  if (!read(sp - wordSize, &pc) || !read(sp - frame::sender_sp_offset * wordSize, &link)) {
    return fail(Stop::bad_stack);
  }
  return arrive({pc, sp, link});
}

// The caller of a call into Java: the last Java frame before it, kept in the anchor that the call
// saved; in between are C/C++ frames.
bool AsyncStackWalker::caller_of_entry(uintptr_t anchor_address) {
  AsyncAnchor anchor;
  if (!read(anchor_address + in_bytes(JavaFrameAnchor::last_Java_sp_offset()), &anchor.sp) ||
      !read(anchor_address + in_bytes(JavaFrameAnchor::last_Java_fp_offset()), &anchor.fp) ||
      !read(anchor_address + in_bytes(JavaFrameAnchor::last_Java_pc_offset()), &anchor.pc)) {
    return fail(Stop::bad_frame);
  }
  const bool first = anchor.sp == 0;
  if (first && !_c_frames) return fail(Stop::end);
  if (!first && !complete_anchor(&anchor, _at.sp, _high)) return fail(Stop::bad_frame);
  _anchor = anchor;
  _has_anchor = !first;
  _java_done = first;
  if (_c_frames) {
    uintptr_t link = 0, pc = 0;
    const uintptr_t fp = _at.fp;
    const uintptr_t sp = fp + frame::sender_sp_offset * wordSize;
    const bool c_caller = fp >= _at.sp && (first || sp < anchor.sp) && read(fp, &link) &&
                          read(fp + frame::return_addr_offset * wordSize, &pc) &&
                          CodeCache::find_blob(reinterpret_cast<void*>(pc)) == nullptr;
    if (c_caller && arrive({pc, sp, link})) return true;
    if (first) return _stop != Stop::none ? false : fail(Stop::bad_frame);
    _stop = Stop::none;
  }
  return arrive_at_anchor();
}

bool AsyncStackWalker::caller_of_c() {
  AsyncRegisters registers = {_at.pc, _at.sp, _at.fp};
  const AsyncUnwindTables::Step step =
      AsyncUnwindTables::step(&registers, _interrupted, _low, _high);
  const bool interrupted = step == AsyncUnwindTables::Step::stepped_to_interrupted;
  bool found = step == AsyncUnwindTables::Step::stepped || interrupted;
  if (!found && step != AsyncUnwindTables::Step::end) {
    uintptr_t link = 0, pc = 0;
    const uintptr_t fp = _at.fp;
    if (fp >= _at.sp && read(fp, &link) && read(fp + frame::return_addr_offset * wordSize, &pc) &&
        pc != 0) {
      registers = {pc, fp + frame::sender_sp_offset * wordSize, link};
      found = true;
    }
  }
  if (_has_anchor) {
    // Java frames begin where the anchor says, whatever unwinding made of the last C frame.
    if (!found || registers.sp >= _anchor.sp ||
        CodeCache::find_blob(reinterpret_cast<void*>(registers.pc)) != nullptr) {
      return arrive_at_anchor();
    }
    const Registers to = {registers.pc, registers.sp, registers.fp};
    if (interrupted ? arrive_at_interrupted(to) : arrive(to)) return true;
    _stop = Stop::none;
    return arrive_at_anchor();
  }
  if (interrupted) return arrive_at_interrupted({registers.pc, registers.sp, registers.fp});
  if (step == AsyncUnwindTables::Step::end || (found && registers.pc == 0)) return fail(Stop::end);
  if (!found) return fail(Stop::no_unwind_info);
  return arrive({registers.pc, registers.sp, registers.fp});
}

// Behind a call that never returns there may stand another function, or code with another frame. What
// returns is described at the place itself as well.
bool AsyncStackWalker::may_be_interrupted_c() const {
  AsyncRegisters to = {_at.pc, _at.sp, _at.fp};
  if (AsyncUnwindTables::step(&to, /*interrupted=*/true, _low, _high) !=
      AsyncUnwindTables::Step::stepped) {
    return false;
  }
  const uintptr_t pc = to.pc;
  if (is_return_address(pc) || is_leaf_return_address(pc) ||
      (AsyncUnwindTables::is_code(pc) && pd_may_follow_c_call(pc))) {
    return true;
  }
  // A signal's handler returns to a trampoline, which has called nothing.
  return AsyncUnwindTables::step(&to, /*interrupted=*/false, _low, _high) ==
         AsyncUnwindTables::Step::stepped_to_interrupted;
}

// Of return addresses that compiled code describes nowhere.
bool AsyncStackWalker::may_return_from_c(uintptr_t pc) const {
  // C1's code calls stubs, too, where it describes nothing: for an exit of a monitor, say.
  const CodeBlob* const blob =
      _code == Code::framed_stub ? CodeCache::find_blob(reinterpret_cast<void*>(pc)) : nullptr;
  const bool of_c1 =
      blob != nullptr && blob->is_nmethod() && blob->as_nmethod()->is_compiled_by_c1();
  const bool from_leaf = _code == Code::c || _code == Code::stub || of_c1;
  // Generated code is called from C/C++ only through stubs.
  const bool from_c = from_leaf || _code == Code::entry || _code == Code::upcall;
  return (from_leaf && is_leaf_return_address(pc)) || (from_c && AsyncUnwindTables::is_code(pc));
}

address AsyncStackWalker::deopt_handler_around(const nmethod* nm, address pc) {
  const ptrdiff_t most = 24;
  if (nm->is_native_method()) return nullptr;
  const address entries[] = {nm->deopt_handler_begin(), nm->deopt_mh_handler_begin()};
  address found = nullptr;
  for (const address entry : entries) {
    if (nm->stub_contains(entry) && pc > entry && pc - entry < most && entry > found) found = entry;
  }
  return found;
}

bool AsyncStackWalker::has_caller(const Registers& frame) const {
  const Place place(frame.pc);
  uintptr_t word = 0;
  if (!place.return_address) return false;
  if (place.interpreter) return frame.fp >= frame.sp && read(frame.fp, &word);
  if (!place.blob_is_nmethod()) return true;
  const uintptr_t sp = frame.sp + place.blob->frame_size() * wordSize;
  return read(sp - wordSize, &word) && is_return_address(word);
}

// Words that the bytecode of a compiled call passes; -1 where none says.
static int words_passed(nmethod* nm, const PcDesc* desc) {
  if (desc == nullptr || desc->should_reexecute()) return -1;
  DebugInfoReadStream stream(nm, desc->scope_decode_offset());
  stream.read_int();  // its caller's scope
  Method* const method = stream.read_method();
  const int bci = stream.read_bci(), size_of_call = 3;
  if (!AsyncMethods::is_method(p2u(method)) || bci < 0 ||
      bci + size_of_call > method->code_size()) {
    return -1;
  }
  const u1* const bcp = method->code_base() + bci;
  if (*bcp >= Bytecodes::number_of_codes) return -1;
  const Bytecodes::Code internal = static_cast<Bytecodes::Code>(*bcp);
  const Bytecodes::Code code = Bytecodes::java_code(internal);
  const bool calls = code == Bytecodes::_invokevirtual || code == Bytecodes::_invokespecial ||
                     code == Bytecodes::_invokestatic || code == Bytecodes::_invokeinterface;
  ConstantPool* const constants = method->constants();
  const int index = Bytes::get_native_u2(const_cast<u1*>(bcp) + 1);
  if (!calls || internal == Bytecodes::_invokehandle || constants->cache() == nullptr ||
      index >= constants->resolved_method_entries_length()) {
    return -1;
  }
  const int reference = constants->resolved_method_entry_at(index)->constant_pool_index();
  // What method handles lead to may have other arguments.
  const Symbol* const holder = constants->uncached_klass_ref_at_noresolve(reference);
  if (holder == vmSymbols::java_lang_invoke_MethodHandle()) return -1;
  const int receiver = code == Bytecodes::_invokestatic ? 0 : 1;
  return ArgumentSizeComputer(constants->uncached_signature_ref_at(reference)).size() + receiver;
}

uintptr_t AsyncStackWalker::above_arguments(const Place& caller, uintptr_t address,
                                            bool with_locals) const {
  const int passed = words_passed(caller.blob->as_nmethod(), caller.desc), most_locals = 64;
  if (passed < 0) return 0;
  const uintptr_t size = align_up(passed, 2) * wordSize;
  uintptr_t found = 0;
  for (int locals = 0; locals < most_locals; locals++, address += wordSize) {
    const uintptr_t sp = address + size + caller.blob->frame_size() * wordSize;
    Registers to = {0, sp, 0};
    uintptr_t local = 0;
    if (read(sp - wordSize, &to.pc) && read(sp - frame::sender_sp_offset * wordSize, &to.fp) &&
        has_caller(to)) {
      if (found != 0) return 0;
      found = address + size;
    }
    // Locals are zero yet.
    if (!with_locals || !read(address, &local) || local != 0) return found;
  }
  return 0;
}

const char* AsyncStackWalker::explain(Stop stop) {
  switch (stop) {
    case Stop::none:
    case Stop::end:
      return nullptr;
    case Stop::bad_stack:
      return "the stack pointer left the thread's stack or did not advance";
    case Stop::bad_pc:
      return "no return address that a call leaves";
    case Stop::bad_frame:
      return "the frame of interpreted code or of a call into Java does not look like one";
    case Stop::no_unwind_info:
      return "C/C++ code without frame pointer and unwind table";
    case Stop::too_deep:
      return "more inlined scopes than a compiled frame can have";
  }
  return nullptr;
}
