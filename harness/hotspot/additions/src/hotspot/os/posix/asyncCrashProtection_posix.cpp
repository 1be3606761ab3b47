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

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

// A protected call is known by its thread and by where it is on its stack: the faulting code runs a
// little below it. pthread_self() asks for nothing but a register.

struct ProtectedCall {
  volatile uintptr_t frame;  // an address in the frame of call(); 0 when unused
  volatile uintptr_t owner;  // pthread_t
  sigjmp_buf* volatile resume;
};

// In the frame of call(): what comes to lie there later does not look like it.
struct ProtectedFrame {
  sigjmp_buf resume;
  volatile uintptr_t seal;
};

static ProtectedCall _calls[AsyncCrashProtection::kMaxCalls];
static volatile jlong _faults = 0;

// A walk's frames below call(), sanitizers' included, take less.
static const uintptr_t _max_depth = 128 * K;
static const uintptr_t _sealed = 0x5afe5afecafe;

static uintptr_t this_thread() { return static_cast<uintptr_t>(pthread_self()); }

static uintptr_t seal_of(uintptr_t frame) { return frame ^ _sealed; }

static void release(ProtectedCall* call) {
  call->resume = nullptr;
  Atomic::release_store(&call->frame, uintptr_t(0));
}

// Ends this thread's calls that were left by longjmp: a call that goes on stands above `frame`.
static void release_left(uintptr_t frame) {
  const uintptr_t self = this_thread();
  for (ProtectedCall& call : _calls) {
    const uintptr_t left = call.frame;
    if (left != 0 && left <= frame && frame - left < _max_depth && call.owner == self) {
      release(&call);
    }
  }
}

static ProtectedCall* claim(uintptr_t frame) {
  const uintptr_t self = this_thread();
  for (ProtectedCall& call : _calls) {
    if (call.frame == 0 && Atomic::cmpxchg(&call.frame, uintptr_t(0), frame) == 0) {
      call.owner = self;
      return &call;
    }
  }
  return nullptr;
}

bool AsyncCrashProtection::call(Body body, void* argument) {
  ProtectedFrame here;
  const uintptr_t frame = p2u(&here);
  release_left(frame);
  ProtectedCall* volatile slot = claim(frame);
  if (slot == nullptr) {
    body(argument);
    return true;
  }
  here.seal = seal_of(frame);
  // Without the signal mask, which would be a system call; check() restores it.
  const bool completed = sigsetjmp(here.resume, 0) == 0;
  if (completed) {
    slot->resume = &here.resume;
    body(argument);
  }
  here.seal = 0;
  release(slot);
  return completed;
}

bool AsyncCrashProtection::faults_arrive(const void* caller) {
  static volatile uintptr_t known = 0;
  if (Atomic::load(&known) == p2u(caller)) return true;
  sigset_t blocked;
  if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0) return true;
  if (sigismember(&blocked, SIGSEGV) == 1 || sigismember(&blocked, SIGBUS) == 1) return false;
  Atomic::store(&known, p2u(caller));
  return true;
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
  const uintptr_t self = this_thread();
  ProtectedCall* innermost = nullptr;
  for (ProtectedCall& call : _calls) {
    const uintptr_t frame = call.frame;
    if (frame <= sp || frame - sp > _max_depth || call.owner != self || call.resume == nullptr ||
        reinterpret_cast<const ProtectedFrame*>(frame)->seal != seal_of(frame)) {
      continue;
    }
    if (innermost == nullptr || frame < innermost->frame) innermost = &call;
  }
  if (innermost == nullptr) return;
  Atomic::inc(&_faults);
  pthread_sigmask(SIG_SETMASK, &uc->uc_sigmask, nullptr);
  siglongjmp(*innermost->resume, 1);
}
