// The figures of a run: stats.jsonl (README.md says what is in a line) and flames.folded. The
// judge's; one thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/executor/run_files.h"
#include "harness/jvm/methods.h"
#include "stress/agent/flames.h"
#include "stress/agent/histogram.h"
#include "stress/agent/options.h"
#include "stress/agent/registry.h"
#include "stress/agent/sample.h"

namespace framestorm::stress {

class Stats {
 public:
  // Throws std::system_error naming the file that cannot be written.
  explicit Stats(const Options& options);

  void count(const Sample& sample, const Walker& walker, const std::byte* frames);
  // That GetStackTrace was asked where a trace's thread begins, and whether the trace ends before.
  void count_end(WalkerId walker, bool early) {
    ++walkers_[walker].ends_compared;
    if (early) ++walkers_[walker].ends_early;
  }
  // How many samples an oracle looked at so far, and in how many it found something.
  void set_check(std::string_view oracle, uint64_t made, uint64_t broken);
  // That an oracle did not look where it should, and why.
  void set_not_judged(std::string_view oracle, const std::string& why);
  // What samples came to that were held against shadow stacks.
  void set_truth(nlohmann::json figures) { truth_ = std::move(figures); }
  // How often walks came to where a continuation begins, as the VM counts; null where it does not.
  void set_continuations(nlohmann::json counts) { continuations_ = std::move(counts); }
  struct Finished {
    uint64_t findings = 0;
    uint64_t contained = 0;
    uint64_t idle = 0;         // samples of threads that waited
    uint64_t idle_cpu_ns = 0;  // what these cost
    uint64_t delivery_ns = 0;
    uint64_t late_handlers = 0;
    uint64_t most_armed = 0;  // threads sampled at once
  };
  // `ended`: null while the run goes on.
  void write(const Registry::Totals& totals, const Finished& finished, const char* ended);
  // Collapsed stacks, outermost first.
  void write_flames(const MethodTable& methods) const;

 private:
  struct PerWalker {
    Histogram latency;
    uint64_t traces = 0, frames = 0, longest = 0, at_depth_limit = 0;
    uint64_t truncated = 0;  // as the walker says
    uint64_t ends_compared = 0, ends_early = 0;
  };

  const Options& options_;
  JsonLines file_;
  uint64_t begin_ns_;
  std::map<WalkerId, PerWalker> walkers_;
  // By walker, thread state and result; of walks that did not return, how they ended.
  std::map<std::tuple<WalkerId, uint32_t, std::string>, uint64_t> codes_;
  nlohmann::json checks_;
  nlohmann::json truth_;
  nlohmann::json continuations_;
  Flames flames_;
  std::vector<Frame> trace_;
};

}  // namespace framestorm::stress
