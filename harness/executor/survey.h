// What a run does with findings and goes on: it counts them by key (signature.h), and keeps the
// inputs of the first ones of each, minimised at the halt where they were found and executed again
// at later ones. Loop's stack, world halted.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/executor/run_writer.h"
#include "harness/executor/session.h"
#include "harness/executor/signature.h"

namespace framestorm {

class Survey {
 public:
  // Artifacts kept per key: the first ones found, which stand for different inputs and halts; and
  // of a contract finding, whose key is the same for all victims and numbers, the first one of each
  // further victim, and where nothing was mutated of each further shape(), up to
  // kArtifactsPerClause of mutated inputs and as many of others. So a loud defect hides no quiet one.
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
    std::set<std::string> shapes;  // of findings of unmutated inputs that have an artifact
  };
  enum class Worth : uint8_t {
    nothing,
    an_artifact,
    one_more  // even of an input that the bucket has: it breaks the clause in another way
  };
  // Counts a finding.
  static Worth count(const Finding& finding, Bucket* bucket);
  bool reproduces(uint64_t key, const Input& input);

  Session& session_;
  RunWriter& writer_;
  Signatures signatures_;
  std::map<uint64_t, Bucket> buckets_;
};

}  // namespace framestorm
