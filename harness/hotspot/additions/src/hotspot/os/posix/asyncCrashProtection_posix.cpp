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

#include "prims/asyncCrashProtection.hpp"

#include "os_posix.hpp"
#include "runtime/atomic.hpp"
#include "runtime/os.hpp"
#include "runtime/safefetch.hpp"

#include <setjmp.h>
#include <signal.h>

// A protected call is known by where it is on its thread's stack: the faulting code runs a little
// below it. So no thread has to be asked for its identity.

struct ProtectedCall {
  volatile uintptr_t frame;  // an address in the frame of call(); 0 when unused
  sigjmp_buf* volatile resume;
};

static ProtectedCall _calls[AsyncCrashProtection::kMaxCalls];
static volatile jlong _faults = 0;

// A walk's frames below call(), sanitizers' included, take less.
static const uintptr_t _max_depth = 128 * K;

static ProtectedCall* claim(uintptr_t frame) {
  for (ProtectedCall& call : _calls) {
    if (call.frame == 0 && Atomic::cmpxchg(&call.frame, uintptr_t(0), frame) == 0) return &call;
  }
  return nullptr;
}

bool AsyncCrashProtection::call(Body body, void* argument) {
  sigjmp_buf resume;
  ProtectedCall* volatile slot = claim(p2u(&resume));
  if (slot == nullptr) {
    body(argument);
    return true;
  }
  slot->resume = &resume;
  // Without the signal mask, which would be a system call; check() restores it.
  const bool completed = sigsetjmp(resume, 0) == 0;
  if (completed) body(argument);
  slot->resume = nullptr;
  Atomic::release_store(&slot->frame, uintptr_t(0));
  return completed;
}

jlong AsyncCrashProtection::faults() { return Atomic::load(&_faults); }

void AsyncCrashProtection::check(int signal, const void* ucontext) {
  if (signal != SIGSEGV && signal != SIGBUS && signal != SIGFPE && signal != SIGILL) return;
  const ucontext_t* const uc = static_cast<const ucontext_t*>(ucontext);
  const address pc = os::Posix::ucontext_get_pc(uc);
  if (signal == SIGSEGV || signal == SIGBUS) {
    // SafeFetch faults on purpose.
    ucontext_t copy = *uc;
    if (handle_safefetch(signal, pc, &copy)) return;
  }
  intptr_t* sp_words = nullptr;
  os::fetch_frame_from_context(ucontext, &sp_words, nullptr);
  const uintptr_t sp = p2u(sp_words);
  ProtectedCall* innermost = nullptr;
  for (ProtectedCall& call : _calls) {
    const uintptr_t frame = call.frame;
    if (frame <= sp || frame - sp > _max_depth || call.resume == nullptr) continue;
    if (innermost == nullptr || frame < innermost->frame) innermost = &call;
  }
  if (innermost == nullptr) return;
  Atomic::inc(&_faults);
  pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, nullptr);
  siglongjmp(*innermost->resume, 1);
}
