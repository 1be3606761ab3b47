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

#ifndef SHARE_PRIMS_ASYNCCONTINUATIONS_HPP
#define SHARE_PRIMS_ASYNCCONTINUATIONS_HPP

#include "memory/allStatic.hpp"
#include "runtime/atomic.hpp"

// How often walks came to where a continuation begins (ASGST_ContinuationCounts of profile2.h).
class AsyncContinuations : AllStatic {
 public:
  enum Event { barriers, entries, entries_missing, speculative, events };

  static void count(Event event) { Atomic::inc(&_counts[event], memory_order_relaxed); }
  static int64_t counted(Event event) { return Atomic::load(&_counts[event]); }

 private:
  static volatile int64_t _counts[events];
};

#endif  // SHARE_PRIMS_ASYNCCONTINUATIONS_HPP
