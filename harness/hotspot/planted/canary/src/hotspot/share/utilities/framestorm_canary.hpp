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

#ifndef SHARE_UTILITIES_FRAMESTORM_CANARY_HPP
#define SHARE_UTILITIES_FRAMESTORM_CANARY_HPP

// At the place where a fix would have acted: `triggered` when it would have done otherwise. Counts calls and
// triggered ones in the file that the environment's FRAMESTORM_CANARY names, in which they outlive the process.
// Async-signal-safe. Its own file has no edge counters, so that a fuzzer is told nothing.
extern "C" void framestorm_canary(bool triggered);

#define FRAMESTORM_CANARY(triggered) framestorm_canary(triggered)

#endif // SHARE_UTILITIES_FRAMESTORM_CANARY_HPP
