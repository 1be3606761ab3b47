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

#include "prims/asyncContinuations.hpp"

#include "profile2.h"

volatile int64_t AsyncContinuations::_counts[AsyncContinuations::events];

extern "C" JNIEXPORT void JNICALL ASGST_GetContinuationCounts(ASGST_ContinuationCounts* counts) {
  if (counts == nullptr) return;
  counts->barriers = AsyncContinuations::counted(AsyncContinuations::barriers);
  counts->entries = AsyncContinuations::counted(AsyncContinuations::entries);
  counts->entries_missing = AsyncContinuations::counted(AsyncContinuations::entries_missing);
  counts->speculative = AsyncContinuations::counted(AsyncContinuations::speculative);
}
