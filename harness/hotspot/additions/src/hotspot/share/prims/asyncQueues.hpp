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

#ifndef SHARE_PRIMS_ASYNCQUEUES_HPP
#define SHARE_PRIMS_ASYNCQUEUES_HPP

#include "memory/allStatic.hpp"
#include "runtime/atomic.hpp"
#include "utilities/globalDefinitions.hpp"

class JavaThread;
class Thread;
struct AsyncContext;

// The safepoint queues of profile2.h: what the VM calls. All on the thread itself.
class AsyncQueues : AllStatic {
  static volatile int _live;
  static volatile int _lock;

  static bool has_work(const JavaThread* thread);
  static void work(JavaThread* thread, const AsyncContext* at);
  static void note_exception(const JavaThread* thread, address return_address);
  static void end_of(JavaThread* thread);
  static void forget(const Thread* thread);

  friend class AsyncQueueRegistry;

 public:
  static bool any() { return Atomic::load(&_live) != 0; }

  // Whether the thread's poll has to stay armed.
  static bool pending(const JavaThread* thread) { return any() && has_work(thread); }
  // At a poll, or before a frame is taken down otherwise; in the VM or in Java, last Java frame set.
  // `at`: or there.
  static void process(JavaThread* thread, const AsyncContext* at = nullptr) {
    if (any()) work(thread, at);
  }
  // An exception leaves a compiled frame, to this return address.
  static void unwinds(const JavaThread* thread, address return_address) {
    if (any()) note_exception(thread, return_address);
  }
  // The thread has no frames any more.
  static void exits(JavaThread* thread) {
    if (any()) end_of(thread);
  }
  // The Thread is going to be freed; AsyncThreads does not have it any more.
  static void remove(const Thread* thread) { forget(thread); }

  // Where queues have their elements: on the C heap, but for those who may not allocate there.
  struct Memory {
    void* (*allocate)(size_t bytes);
    void (*release)(void* memory);
  };
  static Memory memory;
  // False where polls are made up: the collector does not wait for the thread.
  static bool may_read_heap;
  static bool is_locked() { return Atomic::load(&_lock) != 0; }
};

#endif  // SHARE_PRIMS_ASYNCQUEUES_HPP
