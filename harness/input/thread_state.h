// HotSpot's JavaThreadState (utilities/globalDefinitions.hpp). A number plus one: on the way out of
// that state.
#pragma once

#include <cstdint>

namespace framestorm {

inline constexpr uint32_t kThreadNew = 2, kThreadInNative = 4, kThreadInVm = 6, kThreadInJava = 8,
                          kThreadBlocked = 10;

// HotSpot's name for it: "_thread_in_Java"; "invalid" where it has none. Static storage.
const char* thread_state_name(uint32_t state);

constexpr bool is_legal_thread_state(uint32_t state) {
  return state >= kThreadNew && state <= kThreadBlocked + 1;
}

constexpr bool is_in_java(uint32_t state) {
  return state == kThreadInJava || state == kThreadInJava + 1;
}

// Of a thread that has begun: in native code, in the VM or blocked.
constexpr bool is_outside_java(uint32_t state) {
  return is_legal_thread_state(state) && state >= kThreadInNative && !is_in_java(state);
}

// The same, of a thread that is not on its way out of that state: its anchor stands.
constexpr bool stays_outside_java(uint32_t state) {
  return state == kThreadInNative || state == kThreadInVm || state == kThreadBlocked;
}

}  // namespace framestorm
