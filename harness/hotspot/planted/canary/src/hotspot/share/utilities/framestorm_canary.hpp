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

#include <cstdint>

// At the place where a fix would have acted: `triggered` when it would have done otherwise. Counts calls and
// triggered ones in the file that the environment's FRAMESTORM_CANARY names, in which they outlive the process.
// Async-signal-safe. Its own file has no edge counters, so that a fuzzer is told nothing.
extern "C" void framestorm_canary(bool triggered);

#define FRAMESTORM_CANARY(triggered) framestorm_canary(triggered)

// The mutant in force: the environment's FRAMESTORM_MUTANT, 0 where it has none, until who has mapped the file,
// too, writes another one there. Below 0 none is, and each is counted for itself where it would act.
extern const volatile int64_t* framestorm_mutant;
// Counts as reached, and as triggered when the mutant would act. Returns whether it does. Async-signal-safe.
extern "C" bool framestorm_mutant_acts(int number, bool would_act);

// Whether the n-th mutant acts, at the place where it does; `would_act` is evaluated for the one in force only.
#define FRAMESTORM_MUTANT_IF(n, would_act)                  \
  ((*framestorm_mutant == (n) || *framestorm_mutant < 0) && \
   framestorm_mutant_acts((n), (would_act)))
#define FRAMESTORM_MUTANT(n) FRAMESTORM_MUTANT_IF(n, true)

#endif  // SHARE_UTILITIES_FRAMESTORM_CANARY_HPP
