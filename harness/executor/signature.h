// When two findings of one process are the same: kind, clause and the functions of the innermost
// walker frames, or the victim where there are none; for a contract finding also the walker and what
// it did, whoever the victim was.
// Triage (Python) makes the final buckets from names; this keeps a run from
// recording the same thing a million times and lets the minimizer know what it must not lose.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/jvm/modules.h"
#include "harness/oracles/finding.h"

namespace framestorm {

inline constexpr size_t kSignatureFrames = 3;

// What the walker did to a contract's clause: the detail with `*` for numbers, names of methods and
// whatever else differs between victims and processes, and without what a scenario expects of a
// trace. "frame 3 java/lang/String.hash has bci 99, its last is 12" gives "frame * has bci *, its
// last is *". Empty for findings of other kinds, which their stack tells apart.
std::string detail_class(const Finding& finding);

// The same with its numbers: "frame 3 * has bci 99, its last is 12". Whatever the finding's kind.
std::string shape_of(const Finding& finding);

class Signatures {
 public:
  Signatures();

  // Hash of what makes a finding the same as another. Not async-signal-safe.
  uint64_t key_of(const Finding& finding);

 private:
  // Start of the function that contains an address, module-relative; the address's page when no
  // function is known there.
  uint64_t function_of(uintptr_t address);

  Modules modules_;
  std::map<std::string, FunctionTable> tables_;  // by module path
};

}  // namespace framestorm
