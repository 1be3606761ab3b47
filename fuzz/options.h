// Command line of the fuzz targets.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/baseline.h"
#include "harness/executor/session.h"
#include "harness/input/input.h"

namespace framestorm {

// Exit codes of the targets.
inline constexpr int kExitDone = 0;
inline constexpr int kExitSetup = 2;
// A walk died holding a lock, or very many did not return: start another process.
inline constexpr int kExitNotReusable = 3;
// Strict mode; the codes are libFuzzer's.
inline constexpr int kExitFinding = 77;
inline constexpr int kExitTimeout = 70;  // the finding is a hang

// Who decides what is walked next.
enum class InputSource : uint8_t {
  engine,  // the engine's inputs, and mutants of them
  files,   // an input is an artifact to be reproduced: halts are tried until it shows something
  origin   // mutants of one artifact, at its scenario and halt
};

// What a target takes over from the command line of the engine it is linked with (bundle/); a
// target by itself has none of it.
struct EngineOptions {
  std::vector<std::string> arguments;  // libFuzzer's; empty: the engine makes its own
  InputSource source = InputSource::engine;
  Input origin;
  // Where the artifact of a name goes; empty for none. Unset: into the output folder.
  std::function<std::string(std::string_view name)> artifact;
  // Whether inputs that the engine only reads are walked with a burst of mutants, too.
  bool bursts_of_corpus = true;
  // Exit code where the process can walk no further though nothing was found.
  int worn_out = kExitNotReusable;
};

struct FuzzOptions {
  SessionOptions session;
  std::filesystem::path out;  // empty, in a bundle only: nothing is written
  double seconds = 10;        // of a target that mutates; others are ended by their engine
  uint64_t runs = 0;          // 0: no limit
  uint64_t seed = 1;
  std::vector<Mode> modes;
  std::vector<WalkerId> walkers;  // empty: all that the JDK has and the target can use
  std::vector<std::filesystem::path> corpus;
  bool strict = false;
  bool bench = false;
  // The engine is not told what executions reached: it keeps its seeds and no mutant.
  bool unguided = false;
  Baseline baseline = Baseline::none;
  std::filesystem::path
      mutants;  // the file of counts of a libjvm with mutants; empty: none (mutant_walks.h)
  // Record which edges of libjvm were reached when; AFL++'s slower executions always are. Costs a
  // walk up to a microsecond.
  bool record_edges = false;
  // The world stays as it was first halted for an input's scenario, so that inputs can be compared.
  bool one_halt = false;
  bool bundled = false;
  EngineOptions engine;
};

// Fills *options. Returns a negative number to go on, else the exit code (help, usage error).
int parse_options(std::string_view target, int argc, char** argv, FuzzOptions* options);

}  // namespace framestorm
