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

#ifndef SHARE_PRIMS_ASYNCTHREADS_HPP
#define SHARE_PRIMS_ASYNCTHREADS_HPP

#include "memory/allStatic.hpp"
#include "utilities/globalDefinitions.hpp"

class Thread;
struct AsyncMarks;

// Which thread of the VM a stack address, an OS thread id or a Thread* belongs to. Look-ups take
// constant time, no lock and no hazard pointer, so that any thread may make them, from signal
// handlers too, attached to the VM or not.
//
// What they return is true of a moment of the call. It stays true while that thread is halted.
class AsyncThreads : AllStatic {
 public:
  enum class Kind : uint8_t { java, gc, vm, other };
  // Nothing of *thread is looked at to tell any of it: it may be freed meanwhile.
  struct Entry {
    Thread* thread;
    Kind kind;
    uintptr_t stack_low;   // lowest address
    uintptr_t stack_high;  // just above the highest
    jlong os_thread_id;
    AsyncMarks* marks;  // null, or its frame marks (asyncFrameMarks.cpp)
  };

  // On the thread itself, when its stack's bounds are known. Allocates.
  static void add(Thread* thread, address stack_base, size_t stack_size);
  // Before the Thread is freed. Nothing for one that was never added. Its marks.
  static AsyncMarks* remove(Thread* thread);
  // False when there is no such thread.
  static bool set_marks(const Thread* thread, AsyncMarks* marks);
  static bool is_locked();

  // Async-signal-safe. False when there is no such thread; *entry is then unchanged.
  static bool find_by_stack(uintptr_t stack_address, Entry* entry);
  static bool find_by_os_thread_id(jlong os_thread_id, Entry* entry);
  static bool find_by_thread(const void* thread, Entry* entry);
};

#endif  // SHARE_PRIMS_ASYNCTHREADS_HPP
