#include "harness/executor/survey.h"

#include <algorithm>

#include "harness/executor/minimizer.h"

namespace framestorm {

Survey::Worth Survey::count(const Finding& finding, Bucket* bucket) {
  ++bucket->counts.count;
  ++bucket->counts.victims[std::string(name_of(finding.input.scenario))];
  const std::vector<Input>& kept = bucket->artifacts;
  const bool is_contract = finding.kind == FindingKind::contract;
  const bool unmutated = Executor::is_unmutated(finding.input);
  if (is_contract && unmutated && bucket->shapes.size() < kArtifactsPerClause &&
      bucket->shapes.insert(shape_of(finding)).second) {
    return Worth::one_more;
  }
  if (kept.size() < kArtifactsPerKey) return Worth::an_artifact;
  const auto alike = std::ranges::count(kept, unmutated, &Executor::is_unmutated);
  const bool has_room = is_contract && static_cast<size_t>(alike) < kArtifactsPerClause;
  return has_room && std::ranges::count(kept, finding.input.scenario, &Input::scenario) == 0
             ? Worth::an_artifact
             : Worth::nothing;
}

bool Survey::reproduces(uint64_t key, const Input& input) {
  Executor& executor = session_.executor();
  if (executor.not_reusable()) return false;
  writer_.executing(input);
  const Outcome outcome = executor.execute(input);
  // Not those of walks that oracles made with another depth: that is another input.
  return std::ranges::any_of(outcome.findings, [&](const Finding& finding) {
    return finding.input == input && signatures_.key_of(finding) == key;
  });
}

void Survey::take(const Input& input, const Outcome& outcome) {
  if (outcome.findings.empty()) return;
  Executor& executor = session_.executor();
  const Coverage::Aside aside(executor.coverage());
  // Minimising executes other inputs.
  const auto trace_found = executor.last_trace();
  for (Finding finding : outcome.findings) {
    const uint64_t key = signatures_.key_of(finding);
    Bucket& bucket = buckets_[key];
    const Worth worth = count(finding, &bucket);
    if (worth == Worth::nothing) continue;
    finding.input = minimize(
        finding.input, [&](const Input& candidate) { return reproduces(key, candidate); },
        kMinimizeBudget);
    if (worth != Worth::one_more && std::ranges::count(bucket.artifacts, finding.input) != 0) {
      continue;
    }
    bucket.artifacts.push_back(finding.input);
    auto trace = trace_found;
    // What is written has to be what this input does: its own registers, addresses and trace.
    if (finding.input != input && !executor.not_reusable()) {
      writer_.executing(finding.input);
      const Outcome again = executor.execute(finding.input);
      for (const Finding& own : again.findings) {
        if (signatures_.key_of(own) == key) finding = own;
      }
      trace = executor.last_trace();
    }
    writer_.record(key, bucket.artifacts.size() - 1, finding, trace);
  }
}

void Survey::take_unminimized(const Outcome& outcome) {
  const auto trace = session_.executor().last_trace();
  for (const Finding& finding : outcome.findings) {
    const uint64_t key = signatures_.key_of(finding);
    Bucket& bucket = buckets_[key];
    if (count(finding, &bucket) == Worth::nothing) continue;
    bucket.artifacts.push_back(finding.input);
    writer_.record(key, bucket.artifacts.size() - 1, finding, trace);
  }
}

void Survey::recheck(ScenarioId scenario) {
  for (auto& [key, bucket] : buckets_) {
    for (const Input& artifact : bucket.artifacts) {
      if (artifact.scenario != scenario) continue;
      ++bucket.counts.rechecks;
      if (reproduces(key, artifact)) ++bucket.counts.rechecks_hit;
    }
  }
}

void Survey::write_counts() {
  for (auto& [key, bucket] : buckets_) writer_.write_counts(key, &bucket.counts);
}

}  // namespace framestorm
