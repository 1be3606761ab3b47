// The watchdog: one thread that notices walks which do not end and has their threads interrupted.
// Private to the guard.
//
// A walk costs no system call: its thread only counts up its slot's sequence (odd while it walks).
// The watchdog polls the slots and starts to measure when it meets the same odd number twice.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "harness/guard/guard.h"

namespace framestorm {

struct alignas(64) WatchSlot {
  std::atomic<uint64_t> sequence{0};   // written by the owning thread only
  std::atomic<uint64_t> interrupt{0};  // the sequence the watchdog found hung
  std::atomic<int> lent_to{0};         // of a slot of Guard::Watch: the thread that has it now
};

namespace watchdog {

// Threads that can be known as walking at one time.
inline constexpr size_t kMaxWalkers = 256;

// Slots that belong to no thread, see Guard::Watch.
inline constexpr size_t kMaxWatches = 256;

// Signal that interrupts a hung walk; its handler belongs to the guard.
int signal_number();

// Starts the thread and waits until it runs; it ends with the process. Returns its thread id.
// Throws std::system_error.
int start(const GuardLimits& limits);

// The calling thread's slot. Async-signal-safe. Ends the process with a message when kMaxWalkers
// live threads have one: to walk without a watchdog would hide hangs.
WatchSlot* claim_slot();

// A slot that threads take turns at; null when all kMaxWatches are reserved. Any thread.
WatchSlot* reserve_slot();
void lend_slot(WatchSlot* slot, int tid);

}  // namespace watchdog

}  // namespace framestorm
