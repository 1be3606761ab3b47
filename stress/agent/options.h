// What the agent is told: -agentpath:…/libframestorm.so=key=value,key=value (README.md has the
// table).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/input/input.h"

namespace framestorm::stress {

enum class SamplingMode : uint8_t {
  same_thread,      // the walk runs in the signal handler of the sampled thread
  separate_thread,  // the sampler walks a thread that is halted in its signal handler
  queued,           // so it does, one after the other, with threads whose CPU-time timers expired
  unstopped,        // the sampler walks a thread that runs, from a context it gave before
  count
};
std::string_view name_of(SamplingMode mode);
// What an Input can say of it.
Mode input_mode(SamplingMode mode);

enum class ThreadChoice : uint8_t { all, running, random, count };

struct Options {
  std::vector<WalkerId> walkers = {kDefaultWalker};  // taken in turn, one per sample
  SamplingMode mode = SamplingMode::same_thread;
  std::chrono::nanoseconds interval = std::chrono::microseconds(100);
  ThreadChoice threads = ThreadChoice::running;
  uint32_t random_threads = 0;  // of ThreadChoice::random: how many at a time
  std::filesystem::path out;
  uint64_t seed = 1;
  int32_t depth = 128;
  uint32_t costly = 1000;          // one sample in so many; 0: none
  std::optional<double> duration;  // seconds
  double warmup = 0;               // seconds
  std::string plugin;              // the walker in a shared object: FILE[=OPTIONS]
  bool strict = false;             // a fault in a walk is the JVM's, which dies of it
  uint32_t keep = 3;               // samples kept per signature
  uint32_t seeds = 64;             // unmutated samples kept as inputs
  bool flames = true;
  bool compiled = false;  // what was compiled is told at the end
  bool truth = false;     // samples are held against shadow stacks, which a Java agent keeps
  uint32_t checks =
      50;  // of truth: one sample in so many has a check at a safepoint after it; 0: none
};

inline constexpr int32_t kMaxSampleDepth = 2048;

// Throws std::invalid_argument: what is wrong and what would be right.
Options parse_options(std::string_view text);

// As asked for: "all", "running", "random:8".
std::string threads_text(const Options& options);

}  // namespace framestorm::stress
