// Stands in for HotSpot's header of this name; safe_fetch.cpp defines it.
#pragma once

#include <stdint.h>

// The word at `address`, or `error_value` when it cannot be read. Async-signal-safe.
intptr_t SafeFetchN(intptr_t* address, intptr_t error_value);
