// The figures of a run of the executor.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "harness/executor/executor.h"
#include "harness/executor/recorded_trace.h"
#include "harness/victim/scenario.h"

namespace framestorm {

class RunCounts {
 public:
  RunCounts();

  void note(const Input& input, const Outcome& outcome);

  // Of a request that was answered at a poll.
  void note_answer(const Input& input, const Outcome& answer);
  // Of what a profiler has stored of an unmutated walk.
  void note_recorded(const RecordedVerdict& recorded);
  // Of a profiler: samples that it says it has stored of all walks so far. These, and no others,
  // have succeeded. With `only_good` it does not store those that it could not walk.
  void note_stored(uint64_t stored, bool only_good);

  uint64_t walks() const { return all_.walks; }
  uint64_t findings() const { return findings_; }
  // Walks that did not return.
  uint64_t contained() const { return all_.contained; }
  // Seconds since the first walk; 0 before.
  double elapsed() const;

  // What it adds to a line of stats.jsonl. Allocates.
  nlohmann::json summary() const;

 private:
  // With those of a profiler only once it has told.
  uint64_t unmutated_java() const;
  uint64_t unmutated_java_succeeded() const;
  // By negated code; undocumented ones, which are findings, share the last.
  using ErrorCodes = std::array<uint64_t, 64>;
  static void count_error(int32_t result, ErrorCodes* codes);
  static nlohmann::json record_of(const ErrorCodes& codes);
  struct Counts {
    uint64_t walks = 0, succeeded = 0, unmutated = 0, unmutated_succeeded = 0, contained = 0;
    uint64_t contained_faults = 0;  // by the walker itself
    uint64_t not_called = 0;        // walks that a profiler's own thread did not make
    // `unarmed`: of those answered, not at the first poll for certain (Outcome::at_first_poll).
    uint64_t asked_at_poll = 0, answered_at_poll = 0, unarmed_at_poll = 0;
    uint64_t put_together = 0;  // of parts of different moments
    ErrorCodes unmutated_errors = {};
    void note(const Outcome& outcome);
  };

  Counts all_;
  std::array<Counts, kScenarios> by_scenario_ = {};
  std::array<Counts, static_cast<size_t>(Mode::count)> by_mode_ = {};
  std::array<Counts, static_cast<size_t>(WalkerId::count)> by_walker_ = {};
  ErrorCodes error_codes_ = {};
  std::map<std::string_view, uint64_t> recorded_;  // by RecordedVerdict::verdict
  uint64_t findings_ = 0, executions_ = 0;
  uint64_t unmutated_java_ = 0, unmutated_java_succeeded_ = 0;
  uint64_t unmutated_java_untold_ = 0;  // of these, by a walker that gives no trace
  uint64_t kept_ = 0, counted_ = 0;     // that walker's results, and those that note_stored is of
  uint64_t could_store_ = 0;            // of those, which it has to have stored
  double first_walk_ = 0;               // seconds on the monotonic clock
  double process_start_;                // the same
};

}  // namespace framestorm
