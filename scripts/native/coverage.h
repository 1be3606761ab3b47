// framestorm-native coverage: what a corpus reaches in an instrumented libjvm.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/executor/session.h"

namespace framestorm {

struct CoverageOptions {
  SessionOptions session;
  std::filesystem::path out;
  std::vector<std::filesystem::path> inputs;  // files, in the order they are to be taken in
  std::filesystem::path list;                 // more of them, one a line; empty: none
  int halts = 2;                              // points each scenario is halted at
};

// Walks every input at each halt of its scenario, twice in a row, and writes coverage.json:
// the edges ("pc" from libjvm's load address, "entry"), those each scenario reached, and for each
// input whether it was walked, how many edges it reached, how many features (edge and power of two
// of its count; how the walk ended) nobody before it had, in all and in its scenario, and how many
// of its counters were the same both times. Exit codes as of run_replay(); throws SetupError, also
// for a libjvm without counters.
int run_coverage(const CoverageOptions& options);

}  // namespace framestorm
