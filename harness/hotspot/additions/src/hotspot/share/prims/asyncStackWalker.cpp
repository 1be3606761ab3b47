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

#include "code/codeBlob.hpp"
#include "code/codeCache.hpp"
#include "code/debugInfo.hpp"
#include "code/nmethod.inline.hpp"
#include "code/pcDesc.hpp"
#include "interpreter/interpreter.hpp"
#include "oops/method.hpp"
#include "prims/asyncContinuations.hpp"
#include "prims/asyncMethods.hpp"
#include "prims/asyncUnwindTables.hpp"
#include "runtime/continuation.hpp"
#include "runtime/continuationEntry.hpp"
#include "runtime/frame.hpp"
#include "runtime/javaCalls.hpp"
#include "runtime/javaThread.hpp"
#include "runtime/stubRoutines.hpp"
#include "runtime/vmStructs.hpp"

extern "C" {
extern VMStructEntry* gHotSpotVMStructs;
}

// Private members of HotSpot's classes, by the names that its serviceability agent knows.
static int _orig_pc_offset = -1;     // byte offset, in nmethod, of an int
static int _frame_data_offset = -1;  // byte offset, in UpcallStub, of an int

static int offset_of_field(const char* type, const char* field) {
  for (const VMStructEntry* entry = gHotSpotVMStructs; entry->typeName != nullptr; entry++) {
    if (strcmp(entry->typeName, type) == 0 && strcmp(entry->fieldName, field) == 0) {
      return checked_cast<int>(entry->offset);
    }
  }
  return -1;
}

void AsyncStackWalker::initialize() {
  _orig_pc_offset = offset_of_field("nmethod", "_orig_pc_offset");
  _frame_data_offset = offset_of_field("UpcallStub", "_frame_data_offset");
  AsyncMethods::initialize();
  pd_initialize();
}

AsyncStackWalker::AsyncStackWalker(JavaThread* thread, uintptr_t low, uintptr_t high, bool c_frames)
    : _thread(thread), _low(low), _high(high), _at{0, 0, 0}, _c_frames(c_frames) {}

// The code blob whose code, not only its memory, holds pc.
static CodeBlob* blob_of(uintptr_t pc) {
  CodeBlob* const blob = CodeCache::find_blob(reinterpret_cast<void*>(pc));
  return blob != nullptr && blob->code_contains(reinterpret_cast<address>(pc)) ? blob : nullptr;
}

// The first descriptor at or after an offset into the code; null when there is none. The first and
// last of the table are sentinels, with offsets below and above all others.
static const PcDesc* pc_desc_from(const nmethod* nm, int offset) {
  const PcDesc* low = nm->scopes_pcs_begin();
  const PcDesc* const end = nm->scopes_pcs_end();
  const PcDesc* high = end;
  while (low < high) {
    const PcDesc* const middle = low + (high - low) / 2;
    if (middle->pc_offset() < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < end ? low : nullptr;
}

static int code_offset(const nmethod* nm, uintptr_t pc) {
  return checked_cast<int>(pc - p2u(nm->code_begin()));
}

static const PcDesc* pc_desc_at(const nmethod* nm, uintptr_t pc) {
  const int offset = code_offset(nm, pc);
  const PcDesc* const desc = pc_desc_from(nm, offset);
  return desc != nullptr && desc->pc_offset() == offset ? desc : nullptr;
}

static bool has_scope(const nmethod* nm, const PcDesc* desc) {
  return desc != nullptr && desc->scope_decode_offset() > 0 &&
         desc->scope_decode_offset() < nm->scopes_data_size();
}

bool AsyncStackWalker::is_framed(const CodeBlob* blob) {
  return blob->frame_size() > 0 &&
         (blob->is_runtime_stub() || blob->is_safepoint_stub() || blob->is_deoptimization_stub() ||
          blob->is_uncommon_trap_stub() || blob->is_exception_stub());
}

// Where a stub goes on instead of returning: an exception is thrown to a frame that is deoptimised.
static bool is_exception_entry(const CodeBlob* blob, address pc) {
  return blob->is_deoptimization_stub() &&
         pc == blob->as_deoptimization_blob()->unpack_with_exception_in_tls();
}

AsyncStackWalker::Place::Place(uintptr_t pc) : pc(pc) {
  const address at = reinterpret_cast<address>(pc);
  if (Interpreter::contains(at)) {
    interpreter = true;
    return_address = true;
    return;
  }
  blob = CodeCache::find_blob(at);
  in_code = blob != nullptr && blob->code_contains(at);
  if (!in_code) return;
  if (!blob->is_nmethod()) {
    return_address = StubRoutines::returns_to_call_stub(at) || blob->is_upcall_stub() ||
                     (is_framed(blob) && !is_exception_entry(blob, at)) ||
                     Continuation::is_return_barrier_entry(at);
    return;
  }
  nmethod* const nm = blob->as_nmethod();
  if (nm->method() == nullptr || nm->frame_size() <= 0) return;
  deoptimised = nm->is_deopt_pc(at);
  if (deoptimised || nm->is_native_method()) {
    return_address = true;
    return;
  }
  desc = pc_desc_at(nm, pc);
  return_address = has_scope(nm, desc);
}

bool AsyncStackWalker::Place::blob_is_nmethod() const {
  return blob != nullptr && blob->is_nmethod();
}

// Code of method handles only jumps on.
static bool is_frameless(const nmethod* nm) {
  return nm->frame_size() <= 0 && nm->method()->is_method_handle_intrinsic();
}

bool AsyncStackWalker::is_leaf_return_address(uintptr_t pc) {
  CodeBlob* const blob = blob_of(pc);
  if (blob == nullptr) return false;
  const address at = reinterpret_cast<address>(pc);
  if (!blob->is_nmethod()) return pd_follows_call(at, blob->code_begin());
  nmethod* const nm = blob->as_nmethod();
  return nm->method() != nullptr && (nm->frame_size() > 0 || is_frameless(nm)) &&
         pd_follows_call(at, nm->code_begin());
}

uintptr_t AsyncStackWalker::noted_pc(uintptr_t returns_to) const {
  if (_thread == nullptr || _code != Code::framed_stub) return 0;
  const CodeBlob* const blob = blob_of(returns_to);
  if (blob != nullptr && is_exception_entry(blob, reinterpret_cast<address>(returns_to))) {
    const uintptr_t noted = p2u(_thread->exception_pc());
    return is_return_address(noted) ? noted : 0;
  }
  if (blob == nullptr || !blob->is_nmethod()) return 0;
  const bool polled = _blob->is_safepoint_stub();
  const uintptr_t noted = p2u(polled ? _thread->saved_exception_pc() : _thread->exception_pc());
  if (polled && (returns_to <= noted || returns_to - noted > kMaxPollSize)) return 0;
  return blob_of(noted) == blob && is_return_address(noted) ? noted : 0;
}

bool AsyncStackWalker::complete_anchor(AsyncAnchor* anchor, uintptr_t low, uintptr_t high) {
  if (anchor->sp < low + sizeof(uintptr_t) || anchor->sp >= high ||
      !is_aligned(anchor->sp, sizeof(uintptr_t))) {
    return false;
  }
  if (anchor->pc == 0 && !AsyncMethods::load(anchor->sp - sizeof(uintptr_t), &anchor->pc))
    return false;
  return is_return_address(anchor->pc);
}

bool AsyncStackWalker::start_at_context(const AsyncContext& context) {
  _at = {context.pc, context.sp, context.fp};
  _ucontext = context.ucontext;
  _interrupted = true;
  if (context.sp < _low || !on_stack(context.sp)) return fail(Stop::bad_stack);
  _low = context.sp;
  return classify(Place(context.pc));
}

bool AsyncStackWalker::start_at_frame(const AsyncContext& frame) {
  if (!start_at_context(frame)) return false;
  // Polls are described as calls are, and all of a stub and of a native method has one frame size;
  // but to be returned to it has to have called. The interpreter is returned to anywhere.
  const bool calls = _code == Code::framed_stub || _code == Code::native || _code == Code::compiled;
  const bool returned_to = _code == Code::c
                               ? pd_may_follow_c_call(frame.pc) && !may_be_interrupted_c()
                               : is_return_address(frame.pc) && _code != Code::interpreter &&
                                     (!calls || pd_follows_call(reinterpret_cast<const u1*>(_at.pc),
                                                                _blob->code_begin()));
  // The place behind a call that never returns may be a poll's, where the frame is gone.
  bool gone = false;
  if (_code == Code::compiled && returned_to) {
    const uintptr_t sp = _at.sp + _blob->frame_size() * wordSize;
    Registers whole = {0, sp, 0}, left = {0, _at.sp + wordSize, _at.fp};
    gone = !read(sp - wordSize, &whole.pc) ||
           !read(sp - frame::sender_sp_offset * wordSize, &whole.fp) || !has_caller(whole);
    if (!gone && pd_may_be_gone() && read(_at.sp, &left.pc) && has_caller(left)) {
      return fail(Stop::bad_frame);
    }
  }
  _interrupted = !returned_to || gone;
  return true;
}

bool AsyncStackWalker::start_at_anchor(const AsyncAnchor& anchor, const AsyncContext* context) {
  _anchor = anchor;
  _has_anchor = true;
  if (_c_frames && context != nullptr && context->sp < anchor.sp && start_at_context(*context) &&
      _code == Code::c) {
    return true;
  }
  _stop = Stop::none;
  _low = anchor.sp;
  return arrive_at_anchor();
}

bool AsyncStackWalker::start_below(const Physical& frame, const Physical& caller, bool give) {
  _at = {frame.pc, frame.sp, frame.fp};
  _interrupted = frame.interrupted;
  if (frame.sp < _low || !on_stack(frame.sp)) return fail(Stop::bad_stack);
  _low = frame.sp;
  if (!classify(Place(frame.pc))) return false;
  _frozen = frame.frozen;
  _left_out_frozen = frame.frozen;
  _given = !give;
  _caller_known = true;
  _caller = {caller.frozen ? p2u(StubRoutines::cont_returnBarrier()) : caller.pc, caller.sp,
             caller.fp};
  return true;
}

// Takes what is at _at.pc for the frame's code.
bool AsyncStackWalker::classify(const Place& place) {
  _given = false;
  _scope = 0;
  _scopes = 0;
  _caller_known = false;
  _blob = nullptr;
  _desc = nullptr;
  if (place.interpreter) {
    _code = Code::interpreter;
    return true;
  }
  if (place.blob == nullptr) {
    _code = Code::c;
    // Somewhere in no code at all; a return address was checked before.
    return !_interrupted || AsyncUnwindTables::is_code(_at.pc) || fail(Stop::bad_pc);
  }
  if (!place.in_code) return fail(Stop::bad_pc);
  _blob = place.blob;
  if (_blob->is_nmethod()) return classify_nmethod(place);
  if (StubRoutines::returns_to_call_stub(reinterpret_cast<address>(_at.pc))) {
    _code = Code::entry;
  } else if (_blob->is_upcall_stub() && !_interrupted) {
    _code = Code::upcall;
  } else {
    _code = is_framed(_blob) ? Code::framed_stub : Code::stub;
  }
  return true;
}

bool AsyncStackWalker::classify_nmethod(const Place& place) {
  const nmethod* const nm = _blob->as_nmethod();
  if (nm->method() == nullptr) return fail(Stop::bad_pc);
  if (nm->frame_size() <= 0 && !is_frameless(nm)) return fail(Stop::bad_pc);
  _code = nm->is_native_method() ? Code::native : Code::compiled;
  _desc = place.desc;
  uintptr_t sp = _at.sp;
  const address pc = reinterpret_cast<address>(_at.pc);
  const address handler =
      _interrupted && !place.deoptimised ? deopt_handler_around(nm, pc) : nullptr;
  if (!place.deoptimised && handler == nullptr) return true;
  const uintptr_t size_of_call = 5;
  uintptr_t pushed = 0;
  if (handler != nullptr && read(sp, &pushed) && pushed - p2u(handler) <= size_of_call) {
    sp += wordSize;
  }
  // Returned into for deoptimisation (or going to be): the frame keeps where it really was.
  uintptr_t original = 0;
  int offset = -1;
  if (_orig_pc_offset >= 0) offset = *reinterpret_cast<int*>(p2u(nm) + _orig_pc_offset);
  // 0 is an offset as any other, of a frame that passes nothing on the stack.
  if (offset >= 0 && read(sp + offset, &original) &&
      nm->code_contains(reinterpret_cast<address>(original))) {
    const PcDesc* const desc = pc_desc_at(nm, original);
    if (has_scope(nm, desc)) {
      _at.pc = original;
      _at.sp = sp;
      _desc = desc;
      _interrupted = false;
      return true;
    }
  }
  return _interrupted || fail(Stop::bad_frame);
}

bool AsyncStackWalker::arrive_at_anchor() {
  _has_anchor = false;
  if (_anchor.sp < _low) return fail(Stop::bad_stack);
  _at = {_anchor.pc, _anchor.sp, _anchor.fp};
  _low = _anchor.sp;
  _interrupted = false;
  return classify(Place(_at.pc));
}

// Goes to what a signal interrupted: its pc is anywhere in code, and is no return address.
bool AsyncStackWalker::arrive_at_interrupted(const Registers& registers) {
  if (registers.sp <= _at.sp || !on_stack(registers.sp)) return fail(Stop::bad_stack);
  const Place place(registers.pc);
  if (_java_done && place.in_code_cache()) return fail(Stop::bad_pc);
  // The first context, if any, is of another frame.
  const bool has_context = pd_is_context(_at.sp, registers);
  _ucontext = has_context ? reinterpret_cast<const void*>(_at.sp) : nullptr;
  _at = registers;
  _low = registers.sp;
  _interrupted = true;
  return classify(place);
}

bool AsyncStackWalker::caller() {
  Registers to;
  if (_chunk != 0) return caller_of_frozen();
  if (_caller_known) return arrive(_caller);
  switch (_code) {
    case Code::c:
      return caller_of_c();
    case Code::interpreter:
      return caller_of_interpreted();
    case Code::compiled:
    case Code::native:
      if ((_interrupted || _blob->frame_size() <= 0) && interrupted_compiled_caller(&to)) {
        return _stop == Stop::none && arrive(to);
      }
      // Calls of leaves alone may stand inside what is pushed and popped.
      if (!_interrupted && _code == Code::compiled && _desc == nullptr && has_pushed_words(&to)) {
        return arrive(to);
      }
      return caller_of_framed();
    case Code::framed_stub:
      if (_interrupted && interrupted_stub_caller(&to)) return _stop == Stop::none && arrive(to);
      return caller_of_framed();
    case Code::stub:
      if (_interrupted && interrupted_stub_caller(&to)) return _stop == Stop::none && arrive(to);
      if (!_interrupted && calling_stub_caller(&to)) return arrive(to);
      return fail(Stop::bad_frame);
    case Code::entry: {
      uintptr_t wrapper = 0;
      if (!read(_at.fp + frame::entry_frame_call_wrapper_offset * wordSize, &wrapper) ||
          wrapper <= _at.fp || !on_stack(wrapper)) {
        return fail(Stop::bad_frame);
      }
      return caller_of_entry(p2u(reinterpret_cast<JavaCallWrapper*>(wrapper)->anchor()));
    }
    case Code::upcall: {
      if (_frame_data_offset < 0) return fail(Stop::bad_frame);
      return caller_of_entry(_at.sp + *reinterpret_cast<int*>(p2u(_blob) + _frame_data_offset));
    }
  }
  return fail(Stop::bad_frame);
}

// Frozen frames stand before what entered their continuation.
bool AsyncStackWalker::is_at_mark() {
  if (_mark == nullptr || (_chunk == 0 ? _at : _entry).sp != _mark_caller) return false;
  _at_mark = true;
  return !fail(Stop::end);
}

void AsyncStackWalker::fill_plain(Frame* frame, FrameType type, Method* method) const {
  const bool in_heap = _chunk != 0;
  *frame = {
      type, -1, -1, method, _at.pc, in_heap ? 0 : _at.sp, in_heap ? 0 : _at.fp, _code != Code::c};
}

bool AsyncStackWalker::fill_interpreted(Frame* frame) {
  uintptr_t method = 0;
  bool starting = false;
  if (_interrupted && interrupted_interpreted(&method, &_caller)) {
    starting = true;
    _caller_known = true;
  } else if (_at.fp < _at.sp ||
             !read(_at.fp + frame::interpreter_frame_method_offset * wordSize, &method)) {
    return fail(Stop::bad_frame);
  }
  if (!AsyncMethods::is_method(method)) return fail(Stop::bad_frame);
  Method* const m = reinterpret_cast<Method*>(method);
  // The interpreter jumps through them.
  if (m->is_method_handle_intrinsic()) return fail(Stop::bad_frame);
  fill_plain(frame, m->is_native() ? FrameType::java_native : FrameType::java, m);
  frame->comp_level = 0;
  // Nothing of it is on the stack but where its return address has stood.
  if (starting && _caller.sp == _at.sp) frame->sp -= wordSize;
  if (m->is_native()) return true;
  if (starting) {
    frame->bci = 0;
    return true;
  }
  // While bytecodes run, the bytecode pointer is in a register; the frame's own is of the last
  // call.
  if (_interrupted) frame->bci = AsyncMethods::bci_of(m, interrupted_bcp());
  uintptr_t bcp = 0;
  if (frame->bci < 0 && read(_at.fp + frame::interpreter_frame_bcp_offset * wordSize, &bcp)) {
    frame->bci = AsyncMethods::bci_of(m, bcp);
  }
  // Of a method that is executed either is known.
  if (frame->bci < 0 && AsyncMethods::jmethod_id_or_null(m) == nullptr)
    return fail(Stop::bad_frame);
  return true;
}

bool AsyncStackWalker::fill_compiled(Frame* frame) {
  nmethod* const nm = _blob->as_nmethod();
  // At a call the descriptor stands at the return address. Elsewhere, and at calls of leaves, the
  // next one holds, since descriptors stand at the ends of the ranges they describe.
  const PcDesc* desc = _interrupted ? nullptr : _desc;
  if (desc == nullptr) desc = pc_desc_from(nm, code_offset(nm, _at.pc) + 1);
  if (!has_scope(nm, desc)) {
    fill_plain(frame, FrameType::java, nm->method());
    frame->comp_level = nm->comp_level();
    return true;
  }
  _scope = desc->scope_decode_offset();
  fill_scope(frame);
  return true;
}

void AsyncStackWalker::fill_native(Frame* frame) {
  const bool enters = _blob->code_contains(ContinuationEntry::entry_pc());
  const FrameType type = !enters   ? FrameType::java_native
                         : _frozen ? FrameType::continuation_frozen
                                   : FrameType::continuation;
  fill_plain(frame, type, _blob->as_nmethod()->method());
  frame->comp_level = _blob->as_nmethod()->comp_level();
  if (!enters) return;
  AsyncContinuations::count(AsyncContinuations::entries);
  if (_ends_at_continuation) fail(Stop::end);
}

void AsyncStackWalker::fill_scope(Frame* frame) {
  nmethod* const nm = _blob->as_nmethod();
  DebugInfoReadStream stream(nm, _scope);
  const int sender = stream.read_int();
  Method* const method = stream.read_method();
  const int bci = stream.read_bci();
  const bool inlined = sender > 0 && sender < nm->scopes_data_size();
  fill_plain(frame, inlined ? FrameType::java_inlined : FrameType::java, method);
  frame->comp_level = nm->comp_level();
  frame->bci = bci < 0 ? -1 : bci;
  _scope = inlined ? sender : 0;
  if (++_scopes > kMaxScopes) {
    _scope = 0;
    fail(Stop::too_deep);
  }
}

bool AsyncStackWalker::next(Frame* frame) {
  while (_stop == Stop::none) {
    if (_given) {
      if (_scope != 0) {
        fill_scope(frame);
        return true;
      }
      if (!caller() || is_at_mark()) return false;
      continue;
    }
    _given = true;
    if (between_frames(&_caller)) {
      if (_stop != Stop::none) return false;
      _caller_known = true;
      continue;
    }
    switch (_code) {
      case Code::interpreter:
        return fill_interpreted(frame);
      case Code::compiled:
        return fill_compiled(frame);
      case Code::native:
        fill_native(frame);
        return true;
      default:
        if (_c_frames) {
          fill_plain(frame, FrameType::non_java, nullptr);
          return true;
        }
    }
  }
  return false;
}
