// Over a whole run, walks must have succeeded. A walker or a harness that does nothing
// must not pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace framestorm {

struct LivenessCounts {
  uint64_t walks = 0;
  uint64_t mutated = 0;  // walks with at least one effective mutation
  // Unmutated walks of the Java scenarios in which every walk gives frames (ScenarioInfo).
  uint64_t unmutated_java = 0;
  uint64_t unmutated_java_succeeded = 0;  // of these, with at least one frame
};

// Share of unmutated walks of Java scenarios that must give frames.
inline constexpr double kMinimumSuccess = 0.9;

// What is wrong with a run, one sentence each; empty when it was alive.
std::vector<std::string> check_liveness(const LivenessCounts& counts);

}  // namespace framestorm
