#include "harness/oracles/finding.h"

namespace framestorm {

std::string_view name_of(FindingKind kind) {
  constexpr std::string_view kNames[] = {"fault",    "hang",      "unsafe_call", "terminal_call",
                                         "contract", "sanitizer", "vm_error"};
  return name_in(kNames, kind);
}

}  // namespace framestorm
