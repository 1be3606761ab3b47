// What brings the inputs: libFuzzer or AFL++. A program is linked with one of them
// (engine_libfuzzer.cpp, engine_afl.cpp); the driver knows neither.
//
//   main ─> run_target ─> FuzzEngine::prepare ─> control thread, JVM, victims
//                                                   └─ loop's stack: FuzzEngine::run ─> InputLoop
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/code_names.h"
#include "fuzz/options.h"
#include "harness/jvm/coverage.h"

namespace framestorm {

// The driver, as an engine sees it. Loop's stack.
class InputLoop {
 public:
  virtual ~InputLoop() = default;
  // One execution; the counters of libjvm that the engine was given are zero. Does not return when
  // the process is to end.
  virtual void execute(std::span<const uint8_t> bytes) = 0;
  // Nobody has an input: ends the process when it was asked to.
  virtual void idle() = 0;
  // The engine has ended: ends the process.
  [[noreturn]] virtual void end(int code) = 0;
  // Structure-aware; both return the size written, 0 when it does not fit.
  virtual size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned seed) = 0;
  virtual size_t cross(std::span<const uint8_t> a, std::span<const uint8_t> b,
                       std::span<uint8_t> out, unsigned seed) = 0;

 protected:
  InputLoop() = default;
  InputLoop(const InputLoop&) = default;
  InputLoop& operator=(const InputLoop&) = default;
};

class FuzzEngine {
 public:
  // The program's.
  static FuzzEngine& get();

  virtual ~FuzzEngine() = default;
  FuzzEngine(const FuzzEngine&) = delete;
  FuzzEngine& operator=(const FuzzEngine&) = delete;

  // Before anything else, with neither thread nor JVM: may fork. May change where the process
  // writes. Returns a negative number to go on, else the process's exit code. Throws SetupError.
  virtual int prepare(FuzzOptions* options) = 0;

  // Whether it is this process that mutates, and so can be told which scenario is halted. Else
  // the world is halted for the scenario of the input that came, and time and runs are limited by
  // somebody else.
  virtual bool mutates_here() const = 0;

  // The code that exists now, when it has changed, for whoever mutates. Control thread, world
  // halted.
  virtual void tell(const CodeNameList& names) = 0;

  // Inputs to the loop, and what they reached back, until the loop ends the process. Loop's stack.
  // Unguided: an engine takes back no counter of libjvm's, only the counters of feedback.h.
  virtual void run(const FuzzOptions& options, const Coverage& coverage, InputLoop& loop) = 0;

 protected:
  FuzzEngine() = default;
};

}  // namespace framestorm
