// A whole program, stepped in windows: it runs at full speed, and again and again one of its platform
// threads is stepped for some ten thousand instructions, from wherever it is.
//
//   full speed, pcs are sampled ──> a thread that has run is suspended; its Java frames are asked for
//         ^                                                   │
//         └── nothing new, lost, or long enough <── stepped, walked and judged
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/stepping/stepper.h"

namespace framestorm::stepping {

struct ProgramOptions {
  std::string main_class;  // on the JVM's class path, with a main method
  std::vector<std::string> arguments;
  std::chrono::duration<double> limit{120};
  std::chrono::duration<double> warm_up{5};  // at full speed, not sampled
  std::function<void()> after_window;        // no thread is stepped
};

// Where the program was in the code cache, when a timer of its CPU time looked; by code, as blobs are
// told apart in results.
struct SampledPlace {
  std::string kind, name;
  uint8_t tier = 0;
  uint32_t offset = 0;
  std::vector<std::byte> code = {};  // of the instruction, and what follows
  auto operator<=>(const SampledPlace&) const = default;
};

struct ProgramResult {
  uint64_t windows = 0;  // in which something was walked
  uint64_t vain = 0;     // windows without that: the thread did not come back to its Java frames
  bool ended = false;    // the program, before its time
  std::map<SampledPlace, uint64_t> sampled;
};

// Control thread, VM running, no victims. The program's threads run on when it returns. Throws
// SetupError when the program cannot be started.
ProgramResult step_program(Jvm& jvm, Stepper& stepper, const ProgramOptions& options);

}  // namespace framestorm::stepping
