#include "harness/oracles/finding.h"

namespace framestorm {

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::fault:
      return "fault";
    case FindingKind::hang:
      return "hang";
    case FindingKind::unsafe_call:
      return "unsafe_call";
    case FindingKind::terminal_call:
      return "terminal_call";
    case FindingKind::contract:
      return "contract";
    case FindingKind::sanitizer:
      return "sanitizer";
    case FindingKind::vm_error:
      return "vm_error";
    case FindingKind::count:
      break;
  }
  return "?";
}

}  // namespace framestorm
