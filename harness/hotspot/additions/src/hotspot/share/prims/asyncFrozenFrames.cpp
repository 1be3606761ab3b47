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

#include "classfile/javaClasses.hpp"
#include "code/codeBlob.hpp"
#include "gc/shared/collectedHeap.hpp"
#include "interpreter/interpreter.hpp"
#include "oops/stackChunkOop.inline.hpp"
#include "prims/asyncStackWalker.hpp"
#include "runtime/continuationEntry.inline.hpp"
#include "runtime/continuationJavaClasses.inline.hpp"
#include "runtime/frame.hpp"
#include "runtime/javaThread.hpp"

// The frames of a continuation that are in the heap, in one stack chunk or several (JEP 444). They
// stand there as on the stack, but for an interpreted frame's own pointers, which are offsets. A
// chunk is read like a stack, with bounds of its own; it stays where it is until the thread's poll is
// over.

bool AsyncStackWalker::enter_frozen(const Registers& entry) {
  const ContinuationEntry* const continuation =
      reinterpret_cast<const ContinuationEntry*>(entry.sp);
  if (!is_stack_watermark_processing_started(_thread)) return false;
  const oop of_thread = continuation->cont_oop(_thread);
  if (of_thread == nullptr) return false;
  _entry = entry;
  _stack_high = _high;
  const stackChunkOop chunk = jdk_internal_vm_Continuation::tail(of_thread);
  return enter_chunk(p2u(cast_from_oop<HeapWord*>(chunk)));
}

// False when neither it nor any of its parents has a frame.
bool AsyncStackWalker::enter_chunk(uintptr_t at) {
  oop of_chunk = cast_to_oop(at);
  stackChunkOop chunk = at == 0 ? nullptr : stackChunkOopDesc::cast(of_chunk);
  for (int i = 0; chunk != nullptr && chunk->is_empty(); i++) {
    if (i == kMaxChunks) return false;
    chunk = chunk->parent();
  }
  if (chunk == nullptr) return false;
  _chunk = p2u(cast_from_oop<HeapWord*>(chunk));
  _chunk_bottom = p2u(chunk->bottom_address());
  // Where the innermost frame's return address and frame pointer are.
  _low = p2u(chunk->sp_address() - frame::sender_sp_offset);
  _high = p2u(chunk->end_address());
  return arrive_at_frozen(p2u(chunk->sp_address()), p2u(chunk->sp_address()));
}

// At the frame whose return address stands below `sp`.
bool AsyncStackWalker::arrive_at_frozen(uintptr_t sp, uintptr_t unextended_sp) {
  const uintptr_t link_at = sp - frame::sender_sp_offset * wordSize;
  uintptr_t pc = 0, link = 0;
  if (!read(sp - wordSize, &pc) || !read(link_at, &link)) return fail(Stop::bad_stack);
  const Place place(pc);
  if (!place.return_address) return fail(Stop::bad_pc);
  const uintptr_t fp = place.interpreter ? link_at + link * wordSize : link;
  _at = {pc, unextended_sp, fp};
  _low = sp;
  _interrupted = false;
  _frozen = false;
  return classify(place);
}

bool AsyncStackWalker::caller_of_frozen() {
  if (_code != Code::interpreter) {
    const uintptr_t sp = _at.sp + _blob->frame_size() * wordSize;
    if (sp >= _chunk_bottom - frame::metadata_words * wordSize) return leave_frozen();
    return arrive_at_frozen(sp, sp);
  }
  uintptr_t locals = 0, sender_sp = 0;
  if (!read(_at.fp + frame::interpreter_frame_locals_offset * wordSize, &locals) ||
      !read(_at.fp + frame::interpreter_frame_sender_sp_offset * wordSize, &sender_sp)) {
    return fail(Stop::bad_frame);
  }
  if (_at.fp + (locals + 1) * wordSize >= _chunk_bottom) return leave_frozen();
  return arrive_at_frozen(_at.fp + frame::sender_sp_offset * wordSize,
                          _at.fp + sender_sp * wordSize);
}

// Of a chunk: to the next, or back to the stack.
bool AsyncStackWalker::leave_frozen() {
  const stackChunkOop chunk = stackChunkOopDesc::cast(cast_to_oop(_chunk));
  const stackChunkOop parent = chunk->parent();
  if (enter_chunk(p2u(cast_from_oop<HeapWord*>(parent)))) return true;
  if (_stop != Stop::none) return false;
  _chunk = 0;
  _high = _stack_high;
  _at = _entry;
  _low = _at.sp;
  _interrupted = false;
  _frozen = false;
  return classify(Place(_at.pc));
}
