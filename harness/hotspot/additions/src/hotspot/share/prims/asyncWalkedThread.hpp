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

#ifndef SHARE_PRIMS_ASYNCWALKEDTHREAD_HPP
#define SHARE_PRIMS_ASYNCWALKEDTHREAD_HPP

#include "prims/asyncStackWalker.hpp"
#include "prims/asyncThreads.hpp"
#include "utilities/globalDefinitions.hpp"

class JavaThread;
class Thread;

// The thread that is to be walked: which one, whether now, and from where. Async-signal-safe.
class AsyncWalkedThread {
 public:
  // Bits, as in profile.h and profile2.h.
  enum Kind : int { kind_java = 1, kind_cpp = 2, kind_gc = 4, kind_deopt = 8 };

  enum class Refusal : uint8_t {
    none,
    no_thread,  // not one of the VM
    exiting,
    deoptimising,
    collecting,  // the world is stopped for it
    at_safepoint
  };

  // The calling thread. One that the VM does not know has no stack bounds and no thread().
  static AsyncWalkedThread current();
  // False when there is none.
  static bool with_stack(uintptr_t stack_address, AsyncWalkedThread* thread);
  static bool with_os_thread_id(jlong id, AsyncWalkedThread* thread);
  // `thread` may be anything.
  static bool of(const void* thread, AsyncWalkedThread* walked);
  // `env` may be anything.
  static bool with_env(const void* env, AsyncWalkedThread* thread);

  // For a thread the VM does not know: takes the stack to be some megabytes from here on.
  void assume_stack(uintptr_t sp);

  Thread* thread() const { return _thread; }
  JavaThread* java_thread() const { return _java; }  // null for one that is not Java's
  void* env() const;                                 // JNIEnv*, null for one that is not Java's
  uintptr_t low() const { return _low; }
  uintptr_t high() const { return _high; }
  AsyncMarks* marks() const { return _marks; }  // null when it has none

  int kind() const;
  // A subset of the JVMTI thread state; -1 for a thread that is not Java's.
  jint jvmti_state() const;
  Refusal refusal(bool unsafe_states) const;

  enum class Start : uint8_t {
    started,
    no_java_frame,  // it has none; with C frames there are those
    unknown_state,  // _thread_state is none of HotSpot's
    failed          // nothing to start from; the walker's stop() says why
  };
  // Starts at the last Java frame the thread has noted or, in Java and for C frames, at the
  // context, which may be null.
  Start start(AsyncStackWalker* walker, const AsyncContext* context, bool c_frames) const;
  bool in_java() const;

  // Reads pc, sp and fp of a ucontext_t. False for null and for one that cannot be read.
  static bool context_of(const void* ucontext, AsyncContext* context);

 private:
  static AsyncWalkedThread from(const AsyncThreads::Entry& entry);

  Thread* _thread = nullptr;
  JavaThread* _java = nullptr;
  AsyncThreads::Kind _kind = AsyncThreads::Kind::other;
  uintptr_t _low = 0;
  uintptr_t _high = 0;
  AsyncMarks* _marks = nullptr;
};

#endif  // SHARE_PRIMS_ASYNCWALKEDTHREAD_HPP
