// One sample, from the moment it is taken until it is judged. Plain data: filled in signal
// handlers.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "harness/victim/context.h"
#include "harness/walk/walk_record.h"
#include "stress/shadow/shadow_stack.h"

namespace framestorm::stress {

// Why a sample that was due was not taken, or a taken one not judged.
enum class LostCause : uint8_t {
  timer_overrun,    // the timer expired again before its signal was delivered
  signals_blocked,  // so did it while HotSpot handled a fault of the thread's, all signals blocked
  thread_exiting,   // the signal came after the thread's ThreadEnd
  late_handler,     // the signal came after the sampler had given the request up
  halt_timeout,     // the thread did not come to its handler in time
  buffer_full,      // every buffer was in use
  unjudged,         // was walked, but the judge did not keep up
  not_java,         // the thread is none of Java's (any more)
  throttled,        // put off, so that the thread makes progress between its samples
  waiting,          // put off, since the thread had been waiting for long
  creating_thread,  // put off, because each signal makes the thread's clone(2) begin anew
  stack_too_small,  // no room for a handler above the thread's guard pages
  no_timer,         // the system had no timer left for the thread
  count
};
std::string_view name_of(LostCause cause);

inline constexpr size_t kLostCauses = static_cast<size_t>(LostCause::count);

// Bytes of stack from sp up that every sample carries; those that are judged closely carry all.
inline constexpr size_t kStackWindow = 2048;

// Whether a sample has its thread's shadow stack.
enum class ShadowState : uint8_t {
  not_asked,
  there,      // of a platform thread
  mounted,    // of a virtual thread, whose outer frames may be in the heap
  of_carrier  // of a thread that also carries virtual ones: it may be about to begin or end that
};

struct Sample {
  uint64_t number = 0;  // of the run, from 1
  uint32_t thread = 0;  // index in the registry
  int tid = 0;
  WalkRecord walk;  // what it borrows is the slot's
  bool costly = false;
  bool suspicious = false;  // something may be wrong that only the slot's records say
  uintptr_t last_java_sp = 0, last_java_pc = 0, last_java_fp = 0;
  void* java_thread = nullptr;
  void* jni_env = nullptr;
  uintptr_t stack_base = 0, stack_end = 0;
  greg_t registers[NGREG] = {};
  int32_t slot = -1;  // whose records belong to it; -1: none any more
  uint32_t frame_bytes = 0;
  uint32_t stack_bytes = 0;  // copied from sp up
  ShadowState shadow_state = ShadowState::not_asked;
  int64_t shadow_owner = ShadowStack::kNobody;
  uint32_t shadow_depth = 0;  // of which the sample has the innermost shadow_count
  uint32_t shadow_count = 0;
  // Walked from a native method that an instrumented one called, with GetStackTrace beside it.
  bool at_safepoint = false;
  bool sandwiched = false;  // such a check comes after it

  uintptr_t pc() const { return get_register(registers, Register::pc); }
  uintptr_t sp() const { return get_register(registers, Register::sp); }
  uintptr_t fp() const { return get_register(registers, Register::fp); }
};

}  // namespace framestorm::stress
