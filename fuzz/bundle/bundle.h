// A target that brings along all it needs and is started by somebody else's engine (OSS-Fuzz,
// ClusterFuzz): with the engine's command line, from any folder, in any environment.
//
//   <folder>/fuzz_stack              the target; fuzz_stack_seed_corpus.zip, .dict, .options
//   <folder>/framestorm/jdk          the JDK under test
//   <folder>/framestorm/classes      the victims' classes
//   <folder>/framestorm/arguments    more arguments of the target (options.h), one a line
#pragma once

#include <string_view>

#include "fuzz/options.h"

namespace framestorm {

// Gives the process the environment the JVM needs, whatever it was started with: ASan and UBSan
// leave HotSpot its signals, no JVM arguments come from outside. Sanitizers read theirs before
// main(), so where they differ the program is executed anew, in this process. Before any thread.
// Throws std::system_error.
void prepare_environment(char** argv);

// What a target of the bundle that this program belongs to runs with. Returns a negative number to
// go on, else the exit code, after it said what is wrong.
int read_bundle(std::string_view target, FuzzOptions* options);

}  // namespace framestorm
