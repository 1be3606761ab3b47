// Command line of the fuzz targets.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/engine/session.h"
#include "harness/input/input.h"

namespace framestorm {

struct FuzzOptions {
  SessionOptions session;
  std::filesystem::path out;
  double seconds = 10;
  uint64_t runs = 0;  // 0: no limit
  uint64_t seed = 1;
  std::vector<Mode> modes;
  std::vector<WalkerId> walkers;  // empty: all that the JDK has and the target can use
  std::vector<std::filesystem::path> corpus;
  bool strict = false;
  bool bench = false;
  // The engine is not told what executions reached: it keeps its seeds and no mutant.
  bool unguided = false;
  // Record which edges of libjvm were reached when; AFL++'s slower executions always are. Costs a
  // walk up to a microsecond.
  bool record_edges = false;
  // The world stays as it was first halted for an input's scenario, so that inputs can be compared.
  bool one_halt = false;
};

// Exit codes of the targets.
inline constexpr int kExitDone = 0;
inline constexpr int kExitSetup = 2;
// A walk died holding a lock, or very many did not return: start another process.
inline constexpr int kExitPoisoned = 3;
inline constexpr int kExitFinding = 77;  // strict mode

// Fills *options. Returns a negative number to go on, else the exit code (help, usage error).
int parse_options(std::string_view target, int argc, char** argv, FuzzOptions* options);

}  // namespace framestorm
