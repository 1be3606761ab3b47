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

#include "prims/asyncWalkedThread.hpp"

#include "code/codeCache.hpp"
#include "gc/shared/collectedHeap.hpp"
#include "jvmtifiles/jvmti.h"
#include "memory/universe.hpp"
#include "prims/asyncMethods.hpp"
#include "runtime/continuationEntry.hpp"
#include "runtime/javaFrameAnchor.hpp"
#include "runtime/javaThread.inline.hpp"
#include "runtime/os.hpp"
#include "runtime/osThread.hpp"
#include "runtime/safefetch.hpp"
#include "runtime/safepoint.hpp"
#include "runtime/thread.hpp"

#include <ucontext.h>

AsyncWalkedThread AsyncWalkedThread::from(const AsyncThreads::Entry& entry) {
  AsyncWalkedThread walked;
  walked._thread = entry.thread;
  walked._kind = entry.kind;
  if (entry.kind == AsyncThreads::Kind::java) {
    walked._java = static_cast<JavaThread*>(entry.thread);
  }
  walked._low = entry.stack_low;
  walked._high = entry.stack_high;
  walked._marks = entry.marks;
  return walked;
}

AsyncWalkedThread AsyncWalkedThread::current() {
  AsyncThreads::Entry entry;
  Thread* const thread = Thread::current_or_null_safe();
  if (thread == nullptr || !AsyncThreads::find_by_thread(thread, &entry)) {
    return AsyncWalkedThread();
  }
  return from(entry);
}

bool AsyncWalkedThread::with_stack(uintptr_t stack_address, AsyncWalkedThread* thread) {
  AsyncThreads::Entry entry;
  if (!AsyncThreads::find_by_stack(stack_address, &entry)) return false;
  *thread = from(entry);
  return true;
}

bool AsyncWalkedThread::with_os_thread_id(jlong id, AsyncWalkedThread* thread) {
  AsyncThreads::Entry entry;
  if (!AsyncThreads::find_by_os_thread_id(id, &entry)) return false;
  *thread = from(entry);
  return true;
}

bool AsyncWalkedThread::of(const void* thread, AsyncWalkedThread* walked) {
  AsyncThreads::Entry entry;
  if (thread == nullptr || !AsyncThreads::find_by_thread(thread, &entry)) return false;
  *walked = from(entry);
  return true;
}

bool AsyncWalkedThread::with_env(const void* env, AsyncWalkedThread* thread) {
  const uintptr_t offset = in_bytes(JavaThread::jni_environment_offset());
  return env != nullptr && of(reinterpret_cast<const void*>(p2u(env) - offset), thread) &&
         thread->_java != nullptr;
}

void AsyncWalkedThread::assume_stack(uintptr_t sp) {
  const uintptr_t size = 8 * M;
  _low = sp;
  _high = sp > UINTPTR_MAX - size ? UINTPTR_MAX : sp + size;
}

void* AsyncWalkedThread::env() const {
  return _java == nullptr ? nullptr : _java->jni_environment();
}

// As a number: what stands there may be no JavaThreadState.
static int thread_state_of(const JavaThread* thread) {
  return *reinterpret_cast<const volatile int*>(p2u(thread) +
                                                in_bytes(JavaThread::thread_state_offset()));
}

bool AsyncWalkedThread::in_java() const {
  const int state = thread_state_of(_java);
  return state == _thread_in_Java || state == _thread_in_Java_trans;
}

int AsyncWalkedThread::kind() const {
  if (_java != nullptr) return _java->in_deopt_handler() ? kind_deopt : kind_java;
  if (_thread == nullptr) return kind_cpp;
  if (_kind == AsyncThreads::Kind::gc) return kind_gc;
  const bool collects = _kind == AsyncThreads::Kind::vm && Universe::heap() != nullptr &&
                        Universe::heap()->is_stw_gc_active();
  return collects ? kind_gc : kind_cpp;
}

jint AsyncWalkedThread::jvmti_state() const {
  if (_java == nullptr) return -1;
  jint state = JVMTI_THREAD_STATE_ALIVE;
  switch (thread_state_of(_java)) {
    case _thread_in_native:
    case _thread_in_native_trans:
      state |= JVMTI_THREAD_STATE_RUNNABLE | JVMTI_THREAD_STATE_IN_NATIVE;
      break;
    case _thread_blocked:
    case _thread_blocked_trans: {
      // What the thread waits for is noted beside; otherwise it waits for the VM itself.
      OSThread* const os_thread = _java->osthread();
      switch (os_thread == nullptr ? RUNNABLE : os_thread->get_state()) {
        case MONITOR_WAIT:
          state |= JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER;
          break;
        case OBJECT_WAIT:
          state |= JVMTI_THREAD_STATE_WAITING | JVMTI_THREAD_STATE_IN_OBJECT_WAIT;
          break;
        case CONDVAR_WAIT:
          state |= JVMTI_THREAD_STATE_WAITING;
          break;
        default:
          state |= JVMTI_THREAD_STATE_RUNNABLE;
          break;
      }
      break;
    }
    default:
      state |= JVMTI_THREAD_STATE_RUNNABLE;
      break;
  }
  if (_java->is_suspended()) state |= JVMTI_THREAD_STATE_SUSPENDED;
  return state;
}

AsyncWalkedThread::Refusal AsyncWalkedThread::refusal(bool unsafe_states) const {
  if (_thread == nullptr) return Refusal::no_thread;
  if (_java != nullptr && _java->is_exiting()) return Refusal::exiting;
  if (_java != nullptr && _java->in_deopt_handler()) return Refusal::deoptimising;
  if (unsafe_states) return Refusal::none;
  if (Universe::heap() == nullptr || Universe::heap()->is_stw_gc_active()) {
    return Refusal::collecting;
  }
  return SafepointSynchronize::is_at_safepoint() ? Refusal::at_safepoint : Refusal::none;
}

AsyncWalkedThread::Start AsyncWalkedThread::start(AsyncStackWalker* walker,
                                                  const AsyncContext* context,
                                                  bool c_frames) const {
  bool java = false;
  switch (thread_state_of(_java)) {
    case _thread_new:
    case _thread_uninitialized:
    case _thread_new_trans:
      return Start::no_java_frame;
    case _thread_in_native:
    case _thread_in_native_trans:
    case _thread_in_vm:
    case _thread_in_vm_trans:
    case _thread_blocked:
    case _thread_blocked_trans:
      break;
    case _thread_in_Java:
    case _thread_in_Java_trans:
      java = true;
      break;
    default:
      return Start::unknown_state;
  }
  const char* const noted = reinterpret_cast<const char*>(_java->frame_anchor());
  const auto word = [noted](ByteSize offset) {
    return *reinterpret_cast<const volatile uintptr_t*>(noted + in_bytes(offset));
  };
  AsyncAnchor anchor = {word(JavaFrameAnchor::last_Java_sp_offset()),
                        word(JavaFrameAnchor::last_Java_fp_offset()),
                        word(JavaFrameAnchor::last_Java_pc_offset())};
  const bool has_java_frames = anchor.sp != 0;
  // A stub in Java notes its sp before it calls, and no pc: until then, what is below its sp is of
  // a call before.
  const bool called = !java || context == nullptr || context->sp < anchor.sp ||
                      (anchor.pc != 0 && context->sp == anchor.sp);
  // Freezing ends with a note of the continuation's entry (FreezeBase::unwind_frames). The stub that
  // yields clears it, and stands above frames that are whole until it drops them.
  const bool yields = java && context != nullptr &&
                      anchor.pc == p2u(ContinuationEntry::return_pc()) &&
                      CodeCache::find_blob(reinterpret_cast<void*>(context->pc)) != nullptr;
  const bool usable = has_java_frames && called && !yields &&
                      AsyncStackWalker::complete_anchor(&anchor, _low, _high);
  if (usable) {
    return walker->start_at_anchor(anchor, context) ? Start::started : Start::failed;
  }
  if (!java && !has_java_frames && !c_frames) return Start::no_java_frame;
  if ((!java && has_java_frames) || context == nullptr) return Start::failed;
  return walker->start_at_context(*context) ? Start::started : Start::failed;
}

bool AsyncWalkedThread::context_of(const void* ucontext, AsyncContext* context) {
  // Of less than a page, so readable where its ends are.
  const uintptr_t registers = p2u(ucontext) + offsetof(ucontext_t, uc_mcontext);
  uintptr_t word = 0;
  if (ucontext == nullptr || !AsyncMethods::load(registers, &word) ||
      !AsyncMethods::load(registers + sizeof(mcontext_t) - sizeof(word), &word)) {
    return false;
  }
  intptr_t* sp = nullptr;
  intptr_t* fp = nullptr;
  const address pc = os::fetch_frame_from_context(ucontext, &sp, &fp);
  *context = {p2u(pc), p2u(sp), p2u(fp), ucontext};
  return true;
}
