// What every fuzz target's main() calls: an engine's loop (fuzz_engine.h) over the one data path.
//
//   main ─> run_target ─> control thread: Session ─> loop's stack: FuzzEngine::run
//                                                         │ inputs, and mutations asked for
//                                                         ▼
//                                            Driver: one input, and a burst of its mutants
//                              HaltPolicy: at which halt ──┤ │ ├── Guidance: what the engine hears
//                                                          │ ▼ │
//                                            WalkLoop: Executor::execute ─> RunCounts, Survey
//
// The engine itself sees no crash in survey mode; in strict mode the first finding ends the process
// with its artifact.
#pragma once

#include <string_view>

#include "fuzz/options.h"

namespace framestorm {

// `target` names a profile of mutator_profile.h. Returns the process's exit code (see README.md).
int run_target(std::string_view target, int argc, char** argv);

// The same with options that are known already.
int run_target(std::string_view target, FuzzOptions options);

}  // namespace framestorm
