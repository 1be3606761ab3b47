// What a run does with findings and goes on: it counts them by key (signature.h), and keeps the
// inputs of the first ones of each, minimised at the halt where they were found and executed again
// at later ones. Loop's stack, world halted.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/executor/run_writer.h"
#include "harness/executor/session.h"
#include "harness/executor/signature.h"

namespace framestorm {

class Survey {
 public:
  // Artifacts kept per key: the first ones found, which stand for different inputs and halts; and
  // of a contract finding, whose key is the same for all victims, the first one of each further
  // victim up to kArtifactsPerClause.
  static constexpr size_t kArtifactsPerKey = 6;
  static constexpr size_t kArtifactsPerClause = 16;
  static constexpr uint32_t kMinimizeBudget = 300;

  Survey(Session& session, RunWriter& writer) : session_(session), writer_(writer) {}

  // The findings of the walk of `input` that was just made, minimised; for that it walks again.
  void take(const Input& input, const Outcome& outcome);
  // As they are; for replay, and for a process that ends at its finding.
  void take_unminimized(const Outcome& outcome);
  // Executes the artifacts of a scenario again, where the world is halted now.
  void recheck(ScenarioId scenario);
  // Where they have changed. Any stack.
  void write_counts();

  Signatures& signatures() { return signatures_; }

 private:
  struct Bucket {
    KeyCounts counts;
    std::vector<Input> artifacts;
  };
  // Counts a finding; whether it is worth an artifact.
  static bool count(const Finding& finding, Bucket* bucket);
  bool reproduces(uint64_t key, const Input& input);

  Session& session_;
  RunWriter& writer_;
  Signatures signatures_;
  std::map<uint64_t, Bucket> buckets_;
};

}  // namespace framestorm
