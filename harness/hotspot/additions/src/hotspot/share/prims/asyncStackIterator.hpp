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

#ifndef SHARE_PRIMS_ASYNCSTACKITERATOR_HPP
#define SHARE_PRIMS_ASYNCSTACKITERATOR_HPP

#include "memory/allStatic.hpp"
#include "prims/asyncStackWalker.hpp"
#include "prims/asyncWalkedThread.hpp"
#include "profile2.h"

// The iterators of profile2.h, for those who call handlers with them. Async-signal-safe.
class AsyncStackIterator : AllStatic {
 public:
  // What an iterator gives.
  struct Source {
    explicit Source(const AsyncStackWalker& at_top) : walker(at_top) {}
    AsyncStackWalker walker;             // at its start
    bool has_first = false;              // a frame comes before those of the walker ...
    AsyncStackWalker::Frame first = {};  // ... this one
    bool other_thread = false;           // another thread's stack: faults are contained
    bool to_first_java_frame = false;    // ends before the first method that is not native
    int error = 0;                       // below 0: there is no frame, but this
  };

  // Calls `call` with an iterator that ends with it.
  template <typename Call>
  static void run(const Source& source, Call call) {
    run(
        source, [](ASGST_Iterator* iterator, void* c) { (*static_cast<Call*>(c))(iterator); },
        &call);
  }
  static void run(const Source& source, ASGST_IteratorHandler fun, void* argument);

  // A walker of the thread's stack that does what the options (ASGST_Options) say, but for C frames.
  static AsyncStackWalker walker_of(const AsyncWalkedThread& thread, bool c_frames, int options);
  // Whether a thread may be walked now, with these ASGST_Options; kind or error.
  static int judge(const AsyncWalkedThread& thread, int options);
  // The error for an attempt to start that failed.
  static int error_of(AsyncWalkedThread::Start start);
};

#endif  // SHARE_PRIMS_ASYNCSTACKITERATOR_HPP
