// findings.jsonl of a stepping process, with the artifacts that it names.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/executor/run_files.h"
#include "harness/executor/session.h"
#include "harness/executor/signature.h"
#include "harness/stepping/stepper.h"

namespace framestorm {

// The findings as every run leaves them behind (executor/run_files.h), each with what only stepping
// knows of it in "step". One that is made for the same folder begins anew.
class FindingsWriter {
 public:
  FindingsWriter(const std::filesystem::path& folder, Session& session);

  // `time`: seconds of the run.
  void write(const stepping::StepFinding& found, double time);

 private:
  // Writes its artifact, too.
  nlohmann::json line_of(const Finding& finding, uint64_t key, double time,
                         const std::vector<NamedFrame>& trace);
  // Of a program: what was there.
  nlohmann::json keep(const stepping::StepFinding& found, uint64_t key, double time,
                      const std::vector<NamedFrame>& trace, const nlohmann::json& step);
  // Of the next artifact.
  std::string name(uint64_t key);
  void write_input(const Input& input, const std::string& artifact);

  const std::filesystem::path folder_;
  const Jvm& jvm_;
  const Executor& executor_;
  const Modules modules_;
  Signatures signatures_;
  JsonLines file_;
  std::map<uint64_t, KeyCounts> counts_;
  std::map<uint64_t, size_t> indices_;  // of the next artifact
};

// What a stepper has found so far: it is not lost with a JVM that dies later.
class FindingsSoFar {
 public:
  FindingsSoFar(const std::filesystem::path& folder, Session& session,
                const stepping::Stepper& stepper);

  // Since this was made.
  double seconds() const;
  // While no thread is stepped. update() is for those who come by often: it writes when there are
  // more than there were, and some seconds after it was written last.
  void update();
  void write();

 private:
  const std::filesystem::path folder_;
  Session& session_;
  const stepping::Stepper& stepper_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::map<std::string, double> seen_;  // when each was there first, by its key
  size_t written_ = 0;
  double written_at_ = 0;  // seconds()
};

}  // namespace framestorm
