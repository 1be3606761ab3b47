#include "harness/oracles/finding.h"

#include <algorithm>

namespace framestorm {

std::string_view name_of(FindingKind kind) {
  constexpr std::string_view kNames[] = {"fault",    "hang",      "unsafe_call", "terminal_call",
                                         "contract", "sanitizer", "vm_error"};
  return name_in(kNames, kind);
}

FaultRecord place_with(std::span<const uintptr_t> stack) {
  FaultRecord place;
  place.stack_size = static_cast<uint32_t>(std::min(stack.size(), kMaxStack));
  std::ranges::copy(stack.first(place.stack_size), place.stack);
  place.pc = place.stack[0];
  return place;
}

}  // namespace framestorm
