// One finding as the executor reports it and as it stands, one JSON object a line, in
// <out>/findings.jsonl. Symbols, buckets and words are added by triage (Python), which knows files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "harness/guard/guard.h"
#include "harness/input/input.h"

namespace framestorm {

enum class FindingKind : uint8_t {
  fault,
  hang,
  unsafe_call,
  terminal_call,
  contract,   // an oracle; `clause` says which
  sanitizer,  // a report; `clause` is its check
  vm_error,   // a check of HotSpot's own failed; `clause` is its condition and file
  count
};
std::string_view name_of(FindingKind kind);

// What has this stack, where no walk ended: its innermost address is the pc.
FaultRecord place_with(std::span<const uintptr_t> stack);

// Clause of oracle `truth`.
inline constexpr std::string_view kWrongFrames = "wrong-frames";

// Finding::oracle of stepping, which has its own (harness/stepping).
inline constexpr std::string_view kSequenceOracle = "sequence";

// Finding::oracle where only a walk without the change shows that a walker is worse with it: refused or
// short where that is right, which is no finding by itself. The gate compares so, instruction by
// instruction (scripts/framestorm_cli/gate/instructions.py).
inline constexpr std::string_view kGateOracle = "gate";

struct Finding {
  FindingKind kind = FindingKind::fault;
  std::string clause;  // contract: stable identifier, "count-exceeds-depth"; unsafe_call: function
  std::string detail;  // one sentence with the values
  // Of a fault, hang, terminal_call or vm_error; of the others only the stack.
  FaultRecord fault;
  // As executed; of a walk that an oracle made with another depth, with that depth.
  Input input;
  std::string_view oracle;  // the name it is declared by; empty: none found it
  uint64_t mutant = 0;      // of libjvm, that was in force; 0: none
};

}  // namespace framestorm
