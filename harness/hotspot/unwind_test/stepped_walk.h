// Walks at every instruction of a piece of code, and compares with the return addresses that the
// code is known to have pushed.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "prims/asyncUnwindTables.hpp"

namespace framestorm::unwind_test {

// Bounds of the calling thread's stack.
struct StackBounds {
  uintptr_t low = 0;
  uintptr_t high = 0;
};
StackBounds stack_bounds();

struct SteppedWalks {
  static constexpr size_t kKept = 24;

  // Where a walk differed from the truth, or gave up.
  struct Place {
    uintptr_t pc = 0;        // of the thread
    uintptr_t frame_pc = 0;  // of the frame whose caller was wanted
    uintptr_t expected = 0;
    uintptr_t found = 0;
    AsyncUnwindTables::Step step = AsyncUnwindTables::Step::stepped;
  };

  uint64_t instructions = 0;  // walks made
  uint64_t frames = 0;        // right ones
  int deepest = 0;
  uint64_t wrong = 0;  // walks
  uint64_t given_up = 0;
  std::array<Place, kKept> wrong_places{};
  std::array<Place, kKept> given_up_places{};

  // For failure messages.
  std::string explain_wrong() const;
  std::string explain_given_up() const;
};

// Runs `function` one instruction at a time. Not nested; one thread.
SteppedWalks walk_at_every_instruction(void (*function)());

}  // namespace framestorm::unwind_test
