// What samples broke: findings.jsonl, and the samples themselves. The judge's; one thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "harness/executor/run_files.h"
#include "harness/executor/signature.h"
#include "harness/jvm/modules.h"
#include "harness/oracles/oracle.h"
#include "stress/agent/options.h"
#include "stress/agent/sample_ring.h"
#include "stress/agent/walk_slot.h"

namespace framestorm::stress {

class Findings {
 public:
  // Makes the folder and its samples/ and seeds/. Throws std::system_error naming what cannot be
  // written; so do the methods.
  Findings(const Options& options, Jvm& jvm);

  // Counts a finding, and writes it with its sample while few of its signature are kept. `slot`:
  // null for a sample that was judged by its trace alone. `truth`: what it is kept with, if anything.
  void record(const Finding& finding, const SampleRing::Entry& entry, const WalkSlot* slot,
              const WalkView& view, const nlohmann::json& truth = {});
  // Keeps an unmutated sample as an input for the fuzzers, as long as few are.
  void keep_seed(const SampleRing::Entry& entry, const WalkSlot& slot);
  // The running counts per signature.
  void write_counts();
  uint64_t count() const { return count_; }

 private:
  struct Bucket {
    KeyCounts counts;
    uint64_t kept = 0;
  };

  const Options& options_;
  Jvm& jvm_;
  JsonLines file_;
  Signatures signatures_;
  Modules modules_;
  std::map<uint64_t, Bucket> buckets_;
  uint64_t count_ = 0;
  uint64_t kept_ = 0;
  std::set<std::vector<uint8_t>> seeds_;
  uint64_t begin_ns_;
};

}  // namespace framestorm::stress
