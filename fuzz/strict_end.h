// How a process ends at a finding in strict mode: as libFuzzer would at a crash, with its words,
// its artifact and its exit codes, so that whoever started the target (OSS-Fuzz, ClusterFuzz,
// -minimize_crash) understands it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "harness/oracles/finding.h"

namespace framestorm {

// Where an artifact of that name ("crash-0123") goes; empty: nowhere, the engine keeps its own.
using ArtifactPath = std::function<std::string(std::string_view name)>;

// Says the finding on standard error and writes `input` as artifact. Reads libjvm's symbols; world
// halted or not. Returns the process's exit code. Throws SetupError when it cannot write.
int report_crash(const Finding& finding, const Input& input, const ArtifactPath& artifact);

// Ends the process without exit handlers, whose HotSpot would wait for threads that are still
// victims; clang's coverage profile, where the program has one, is written. Any thread.
[[noreturn]] void end_process(int code);

}  // namespace framestorm
