// The files that every run leaves behind, whoever drives it: what the JVM was, and findings line by
// line (run_writer.h lists them all). Any thread; allocates.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/hex.h"
#include "harness/jvm/jvm.h"
#include "harness/jvm/modules.h"
#include "harness/oracles/oracle_set.h"

namespace framestorm {

// A frame by name, for reports.
struct NamedFrame {
  std::string method;
  int32_t bci = 0;
};

// A file of JSON objects, one a line, which is with the system when append() returns. Strings that
// are no UTF-8 are replaced. Writes nothing before it is opened. As the functions below, throws
// std::system_error naming the file that could not be written.
class JsonLines {
 public:
  void open(const std::filesystem::path& path);
  void append(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

void write_file(const std::filesystem::path& path, std::string_view content);
void write_file(const std::filesystem::path& path, std::span<const uint8_t> content);
// jvm.json and modules.json.
void write_identity(const std::filesystem::path& folder, const Jvm& jvm);

// One object of findings.jsonl, without what is known of the victim ("context"). `time`: seconds of
// the run. `artifact`: file name in the run's folder. `input`: what the artifact holds; it gives
// "text", "input" and "state" (input/json_form.h) and "victim", its scenario. "detail_class" is what
// the walker did to a contract's clause (signature.h), empty for other kinds. "oracle": Finding::oracle.
nlohmann::json finding_line(const Finding& finding, uint64_t key, double time,
                            const std::string& artifact, const Input& input, const Modules& modules,
                            const std::vector<NamedFrame>& trace);

// Findings of one key so far. `victims`: how many of each. `written`: of the count.
struct KeyCounts {
  uint64_t count = 0, rechecks = 0, rechecks_hit = 0, written = 0;
  std::map<std::string, uint64_t> victims;
};
// The other object of findings.jsonl: running counts, of which the last one of a key holds. Nothing
// when they are as they were written last.
void append_counts(JsonLines* file, uint64_t key, KeyCounts* counts);

// By oracle, why it has not judged what it should.
nlohmann::json not_judged_record(std::span<const OracleSet::NotJudged> oracles);

std::string hex_bytes(const uint8_t* bytes, size_t size);
std::string key_text(uint64_t key);

}  // namespace framestorm
