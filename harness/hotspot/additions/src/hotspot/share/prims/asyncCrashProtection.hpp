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

#ifndef SHARE_PRIMS_ASYNCCRASHPROTECTION_HPP
#define SHARE_PRIMS_ASYNCCRASHPROTECTION_HPP

#include "memory/allStatic.hpp"
#include "utilities/globalDefinitions.hpp"

// Contains the faults of a walk: a second line of defence for walks from another thread than the
// walked one. Costs nothing where it is not used, and no system call where it is.
class AsyncCrashProtection : AllStatic {
 public:
  typedef void (*Body)(void* argument);

  // Runs body; false when it faulted and was abandoned there. So it may take no lock, allocate
  // nothing, and need no destructor. On any thread, attached or not; may be nested. Who leaves a
  // body otherwise, by longjmp, ends its protection with the next call above it on that thread.
  // Beyond kMaxCalls at a time a call is not protected. Async-signal-safe.
  static bool call(Body body, void* argument);

  // Whether a fault would reach the VM's signal handler: a thread that blocks SIGSEGV or SIGBUS is
  // killed by its first one, those of SafeFetch included. `caller`: an address in the code that asks
  // (a profiler's signal handler), of which the answer is remembered when it is yes. One system call
  // otherwise. Async-signal-safe.
  static bool faults_arrive(const void* caller);

  // How many bodies were abandoned so far.
  static jlong faults();

  // For the VM's signal handler: does not return when the fault is a protected body's.
  static void check(int signal, const void* ucontext);

  static constexpr int kMaxCalls = 64;
};

#endif  // SHARE_PRIMS_ASYNCCRASHPROTECTION_HPP
