// `framestorm-step run`: scenarios, instruction by instruction.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/executor/session.h"
#include "harness/stepping/program.h"
#include "harness/stepping/stepper.h"
#include "scripts/native/replay.h"

namespace framestorm {

struct StepOptions {
  SessionOptions session;
  std::filesystem::path out;
  std::vector<WalkerId> walkers;     // empty: all that give traces of any thread
  double seconds = 120;              // for all scenarios, or for the program
  stepping::ProgramOptions program;  // without main class: scenarios
  stepping::StepLimits limits;       // with the events
  std::filesystem::path mutants;     // the file of counts of a libjvm with mutants; empty: none
};

// One try of an artifact whose halt has an occurrence: its scenario is stepped, and walked wherever it
// is at that place. Writes what run_replay() writes.
int replay_step(const ReplayOptions& options);

// Writes step.json, findings.jsonl and artifacts into the output folder. Returns 0, or kNotReusable
// where another process has to go on with the scenarios that are left (harness/jvm/libjvm_mutants.h).
// Control thread. Throws SetupError.
int run_step(StepOptions options);

}  // namespace framestorm
