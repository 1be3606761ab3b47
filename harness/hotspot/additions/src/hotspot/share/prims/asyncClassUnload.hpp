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

#ifndef SHARE_PRIMS_ASYNCCLASSUNLOAD_HPP
#define SHARE_PRIMS_ASYNCCLASSUNLOAD_HPP

#include "memory/allStatic.hpp"

class InstanceKlass;

// The class unload handlers of profile2.h.
class AsyncClassUnload : AllStatic {
 public:
  // With all methods of the class, those of earlier versions that are still there included. On the
  // thread that unloads classes, of which there is one at a time.
  static void call_handlers(InstanceKlass* klass);

  // Is the calling thread in call_handlers()? Async-signal-safe.
  static bool is_in_handler();
};

#endif  // SHARE_PRIMS_ASYNCCLASSUNLOAD_HPP
