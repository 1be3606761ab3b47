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
// Without a folder it writes nothing. Methods throw std::system_error naming the file that could
// not be written. The loop's stack with the world halted, or the control thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "harness/executor/run_counts.h"
#include "harness/executor/run_files.h"
#include "harness/executor/session.h"

namespace framestorm {

class RunWriter {
 public:
  // Creates the folder's files; an empty path stands for no folder. Both have to outlive it.
  RunWriter(const std::filesystem::path& folder, Session& session, const RunCounts& counts);
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  // Before an execution. `bytes`: the input's encoding, if that is known already.
  void executing(const Input& input, std::span<const uint8_t> bytes = {});
  // The coverage counters of an execution, which were zero before it.
  void reached(std::span<const uint8_t> counters) { reached_.note(counters); }
  // An input as it is worth keeping: with the point where its victim is halted now, when it names
  // none. Where the victim was is part of what happened, and replay seeks it.
  Input with_halt(const Input& input) const;
  // A finding of the walk that was just made, its input as artifact number `index` of the key.
  void record(uint64_t key, size_t index, const Finding& finding,
              const std::vector<NamedFrame>& trace);
  // Where they have changed.
  void write_counts(uint64_t key, KeyCounts* counts) { append_counts(&findings_, key, counts); }
  // A line of stats.jsonl, and one of edges.jsonl where there are new ones.
  void write_stats();

 private:
  std::filesystem::path folder_;
  Session& session_;
  const RunCounts& counts_;
  JsonLines findings_, stats_, edges_;
  ReachedEdges reached_;
  std::vector<uint8_t> encoded_;
  uint8_t* current_ = nullptr;  // mapping of current.bin
};

}  // namespace framestorm
