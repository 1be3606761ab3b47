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

#ifndef SHARE_PRIMS_ASYNCUNWINDCPU_HPP
#define SHARE_PRIMS_ASYNCUNWINDCPU_HPP

// Defines AsyncUnwindCpu and HAVE_ASYNC_UNWIND_CPU for CPUs whose C/C++ frames can be unwound by
// tables. For another one: a header like asyncUnwindTables_x86.hpp, and a line here.
#if defined(__x86_64__)
#define HAVE_ASYNC_UNWIND_CPU
#include "asyncUnwindTables_x86.hpp"
#endif

#endif  // SHARE_PRIMS_ASYNCUNWINDCPU_HPP
