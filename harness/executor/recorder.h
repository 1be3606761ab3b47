// What a run leaves behind: the files of one output folder.
//
//   jvm.json       the JVM: version, libjvm and its build id, arguments
//   modules.json   file names of modules in stacks -> paths
//   findings.jsonl one object per recorded finding, and running counts per key
//   stats.jsonl    cumulative numbers, twice a second; the last line is the run's
//   edges.jsonl    edges of libjvm, by index, reached since the line before; where recorded
//   artifacts/     inputs, minimised where they were found
//   current.bin    the input being executed: u64 length, then its bytes; survives a dead process
//
// Without a folder it counts, and writes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "harness/executor/run_files.h"
#include "harness/executor/session.h"
#include "harness/executor/signature.h"
#include "harness/oracles/liveness.h"

namespace framestorm {

class Recorder {
 public:
  // Artifacts kept per key: the first ones found, which stand for different inputs and halts; and
  // of a contract finding, whose key is the same for all victims, the first one of each further
  // victim up to kArtifactsPerClause.
  static constexpr size_t kArtifactsPerKey = 6;
  static constexpr size_t kArtifactsPerClause = 16;
  static constexpr uint32_t kMinimizeBudget = 300;

  // Creates the folder's files; an empty path stands for no folder. Throws std::system_error naming
  // the file that could not be written.
  Recorder(const std::filesystem::path& folder, Session& session);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Loop's stack, world halted.
  void executing(const Input& input, std::span<const uint8_t> bytes);
  // Counts the outcome, and minimises and records its findings. True when one was of a new key.
  bool executed(const Input& input, const Outcome& outcome);
  // The coverage counters of an execution, which were zero before it.
  void reached(std::span<const uint8_t> counters) { reached_.note(counters); }
  // An input as it is worth keeping: with the point where its victim is halted now, when it names
  // none. Where the victim was is part of what happened, and replay seeks it.
  Input with_halt(const Input& input) const;
  // Executes the recorded artifacts of a scenario again, where the world is halted now.
  void recheck(ScenarioId scenario);

  // Writes a line of stats.jsonl and the running counts. Any stack.
  void write_stats();
  LivenessCounts liveness() const;
  uint64_t walks() const { return walks_; }
  uint64_t findings() const { return findings_; }
  // Walks that did not return.
  uint64_t contained() const { return contained_; }
  // Some walk, perhaps one made to minimise or to check again, must be this process's last.
  bool not_reusable() const { return not_reusable_; }
  // Seconds since the first walk.
  double elapsed() const;

  // All findings of an outcome without minimising, each written out; for replay.
  void record_all(const Outcome& outcome);
  Signatures& signatures() { return signatures_; }

 private:
  struct Counts {
    uint64_t walks = 0, succeeded = 0, unmutated = 0, unmutated_succeeded = 0, contained = 0;
  };
  struct Artifact {
    Input input;
  };
  struct Bucket {
    KeyCounts counts;
    uint64_t written_count = 0;
    std::vector<Artifact> artifacts;
    void add(const Finding& finding);
    bool wants(const Finding& finding) const;
  };
  void record(uint64_t key, const Finding& finding, size_t index,
              const std::vector<Executor::NamedFrame>& trace);
  bool reproduces(uint64_t key, const Input& input);
  void append(const std::string& line);
  void write_edges();

  std::filesystem::path folder_;
  Session& session_;
  Signatures signatures_;
  std::ofstream findings_file_;
  std::ofstream stats_file_;
  std::ofstream edges_file_;
  ReachedEdges reached_;
  std::map<uint64_t, Bucket> buckets_;
  std::array<Counts, kScenarios> by_scenario_ = {};
  std::array<Counts, static_cast<size_t>(Mode::count)> by_mode_ = {};
  std::array<Counts, static_cast<size_t>(WalkerId::count)> by_walker_ = {};
  // By negated code; undocumented ones, which are findings, share the last.
  std::array<uint64_t, 64> error_codes_ = {};
  uint64_t walks_ = 0, succeeded_ = 0, findings_ = 0, executions_ = 0, contained_ = 0;
  uint64_t mutated_ = 0, unmutated_java_ = 0, unmutated_java_succeeded_ = 0;
  bool not_reusable_ = false;
  double first_walk_ = 0;  // seconds on the monotonic clock
  double process_start_ = 0;
  uint8_t* current_ = nullptr;  // mapping of current.bin
};

}  // namespace framestorm
