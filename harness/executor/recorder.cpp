#include "harness/executor/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "harness/base/clock.h"
#include "harness/executor/minimizer.h"
#include "harness/input/binary.h"
#include "harness/input/json_form.h"
#include "harness/input/thread_state.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using nlohmann::json;

constexpr size_t kCurrentSize = 8 + kMaxEncodedInput;

double now_s() { return static_cast<double>(monotonic_ns()) * 1e-9; }

// When this process started, on the same clock.
double process_start_s() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  // Field 22, counted behind the command name's closing parenthesis.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 0; i < 20 && fields >> field; ++i) {
  }
  return std::stod(field.empty() ? "0" : field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

uint64_t resident_kb() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace

void Recorder::Bucket::add(const Finding& finding) {
  ++counts.count;
  ++counts.victims[std::string(name_of(finding.input.scenario))];
}

bool Recorder::Bucket::wants(const Finding& finding) const {
  if (artifacts.size() < kArtifactsPerKey) return true;
  return finding.kind == FindingKind::contract && artifacts.size() < kArtifactsPerClause &&
         std::ranges::none_of(
             artifacts,
             [&](const Artifact& artifact) {
               return artifact.input.scenario == finding.input.scenario;
             });
}

Recorder::Recorder(const std::filesystem::path& folder, Session& session)
    : folder_(folder), session_(session), process_start_(process_start_s()) {
  if (folder.empty()) return;
  std::filesystem::create_directories(folder / "artifacts");
  open_for_writing(&findings_file_, folder / "findings.jsonl");
  open_for_writing(&stats_file_, folder / "stats.jsonl");
  open_for_writing(&edges_file_, folder / "edges.jsonl");
  const std::filesystem::path current = folder / "current.bin";
  const int fd = open(current.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  // Allocated now: a full disk must not kill the process in the middle of a walk.
  if (fd < 0 || posix_fallocate(fd, 0, kCurrentSize) != 0) {
    throw std::system_error(errno, std::generic_category(), "writing " + current.string());
  }
  void* mapping = mmap(nullptr, kCurrentSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapping == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping " + current.string());
  }
  current_ = static_cast<uint8_t*>(mapping);
  write_identity(folder_, session_.jvm());
}

Recorder::~Recorder() {
  if (current_ != nullptr) munmap(current_, kCurrentSize);
}

double Recorder::elapsed() const { return first_walk_ == 0 ? 0 : now_s() - first_walk_; }

void Recorder::executing(const Input& input, std::span<const uint8_t> bytes) {
  if (current_ == nullptr) return;
  thread_local std::vector<uint8_t> encoded;
  if (bytes.empty()) {
    encode(input, &encoded);
    bytes = encoded;
  }
  const uint64_t size = std::min(bytes.size(), kMaxEncodedInput);
  std::memcpy(current_, &size, sizeof size);
  std::memcpy(current_ + sizeof size, bytes.data(), size);
}

bool Recorder::reproduces(uint64_t key, const Input& input) {
  if (not_reusable_) return false;
  executing(input, {});
  const Outcome outcome = session_.executor().execute(input);
  not_reusable_ = outcome.not_reusable;
  for (const Finding& finding : *outcome.findings) {
    // Not those of walks that oracles made with another depth: that is another input.
    if (finding.input == input && signatures_.key_of(finding) == key) return true;
  }
  return false;
}

bool Recorder::executed(const Input& input, const Outcome& outcome) {
  ++executions_;
  if (outcome.status != Outcome::Status::walked) return false;
  if (walks_++ == 0) first_walk_ = now_s();
  not_reusable_ = not_reusable_ || outcome.not_reusable;
  const bool java = scenario_info(input.scenario).java;
  const auto count = [&](Counts& counts) {
    ++counts.walks;
    if (outcome.succeeded()) ++counts.succeeded;
    if (outcome.unmutated) ++counts.unmutated;
    if (outcome.unmutated && outcome.succeeded()) ++counts.unmutated_succeeded;
    if (outcome.end != WalkEnd::returned) ++counts.contained;
  };
  count(by_scenario_[static_cast<size_t>(input.scenario)]);
  count(by_mode_[static_cast<size_t>(input.mode)]);
  count(by_walker_[static_cast<size_t>(input.walker)]);
  if (outcome.succeeded()) ++succeeded_;
  if (!outcome.unmutated) ++mutated_;
  if (outcome.end != WalkEnd::returned) {
    ++contained_;
  } else if (outcome.result <= 0) {
    const auto code = static_cast<size_t>(-static_cast<int64_t>(outcome.result));
    ++error_codes_[std::min(code, error_codes_.size() - 1)];
  }
  // A depth of 0 asks for no frames, and some scenarios stand where a walker may give none by
  // design; three registers alone do not say where Java begins.
  if (outcome.unmutated && java && input.walker != WalkerId::asgst_frame &&
      input.call.depth == DepthKind::normal && scenario_info(input.scenario).asgct_percent == 100) {
    ++unmutated_java_;
    if (outcome.succeeded()) ++unmutated_java_succeeded_;
  }
  if (outcome.findings->empty()) return false;

  bool new_key = false;
  const Coverage::Aside aside(session_.executor().coverage());
  // Minimising executes other inputs: take the findings over first.
  const std::vector<Finding> found = *outcome.findings;
  const auto trace = session_.executor().last_trace();
  for (const Finding& finding : found) {
    ++findings_;
    const uint64_t key = signatures_.key_of(finding);
    Bucket& bucket = buckets_[key];
    new_key = new_key || bucket.counts.count == 0;
    bucket.add(finding);
    if (!bucket.wants(finding)) continue;
    Finding minimized = finding;
    if (!outcome.not_reusable) {
      minimized.input = minimize(
          finding.input, [&](const Input& candidate) { return reproduces(key, candidate); },
          kMinimizeBudget);
    }
    bool known = false;
    for (const Artifact& artifact : bucket.artifacts) {
      known = known || artifact.input == minimized.input;
    }
    if (known) continue;
    bucket.artifacts.push_back({minimized.input});
    // What is written has to be what this input does: its own registers, addresses and trace.
    if (minimized.input != input && !not_reusable_) {
      executing(minimized.input, {});
      const Outcome again = session_.executor().execute(minimized.input);
      for (const Finding& own : *again.findings) {
        if (signatures_.key_of(own) == key) minimized = own;
      }
      record(key, minimized, bucket.artifacts.size() - 1, session_.executor().last_trace());
    } else {
      record(key, minimized, bucket.artifacts.size() - 1, trace);
    }
  }
  return new_key;
}

void Recorder::record_all(const Outcome& outcome) {
  const std::vector<Finding> found = *outcome.findings;
  const auto trace = session_.executor().last_trace();
  for (const Finding& finding : found) {
    const uint64_t key = signatures_.key_of(finding);
    Bucket& bucket = buckets_[key];
    bucket.add(finding);
    if (!bucket.wants(finding)) continue;
    bucket.artifacts.push_back({finding.input});
    record(key, finding, bucket.artifacts.size() - 1, trace);
  }
}

void Recorder::recheck(ScenarioId scenario) {
  for (auto& [key, bucket] : buckets_) {
    for (const Artifact& artifact : bucket.artifacts) {
      if (artifact.input.scenario != scenario) continue;
      ++bucket.counts.rechecks;
      if (reproduces(key, artifact.input)) ++bucket.counts.rechecks_hit;
    }
  }
}

void Recorder::record(uint64_t key, const Finding& finding, size_t index,
                      const std::vector<Executor::NamedFrame>& trace) {
  if (folder_.empty()) return;
  const Modules& modules = session_.executor().addresses().modules();
  Victim& victim = session_.victims().of(finding.input.scenario);
  const Input input = with_halt(finding.input);
  char name[48];
  std::snprintf(name, sizeof name, "artifacts/%016lx-%zu.bin", key, index);
  const std::string artifact_name = name;
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  write_file(folder_ / artifact_name,
             std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));

  const AddressSpace& addresses = session_.executor().addresses();
  json line = finding_line(finding, key, elapsed(), artifact_name, input, modules, trace);
  if (victim.slot != nullptr) {
    line["context"] = {
        {"real_pc", addresses.describe(victim.pc, victim)},
        {"real_sp", hex(victim.sp)},
        {"real_fp", hex(victim.fp)},
        {"stack_base", hex(victim.stack_base)},
        {"stack_end", hex(victim.stack_end)},
        {"fault_address", addresses.describe(finding.fault.address, victim)},
        {"thread_state", victim.is_java_thread
                             ? thread_state_name(victim.thread_state(session_.jvm().layout()))
                             : "not a JavaThread"}};
    if (const auto place = addresses.symbolic(finding.fault.address, victim)) {
      line["fault_place"] = to_json(*place);
    }
  }
  append(line.dump(-1, ' ', false, json::error_handler_t::replace));
}

Input Recorder::with_halt(const Input& input) const {
  Input result = input;
  const Victim& victim = session_.victims().of(input.scenario);
  if (input.halt.any && victim.slot != nullptr && !Victims::is_transient(input.scenario)) {
    result.halt = session_.describe_halt(victim);
  }
  return result;
}

void Recorder::append(const std::string& line) {
  findings_file_ << line << '\n';
  findings_file_.flush();
  if (!findings_file_) {
    throw std::system_error(ENOSPC, std::generic_category(),
                            "writing " + (folder_ / "findings.jsonl").string());
  }
}

LivenessCounts Recorder::liveness() const {
  return {walks_, mutated_, unmutated_java_, unmutated_java_succeeded_};
}

void Recorder::write_edges() {
  const std::vector<uint32_t> found = reached_.take_new();
  if (found.empty()) return;
  edges_file_ << json({{"t", elapsed()}, {"new", found}}).dump() << '\n';
  edges_file_.flush();
  if (!edges_file_) {
    throw std::system_error(ENOSPC, std::generic_category(),
                            "writing " + (folder_ / "edges.jsonl").string());
  }
}

void Recorder::write_stats() {
  if (folder_.empty()) return;
  write_edges();
  json scenarios = json::object();
  for (size_t i = 0; i < kScenarios; ++i) {
    const Counts& c = by_scenario_[i];
    if (c.walks == 0) continue;
    scenarios[std::string(name_of(static_cast<ScenarioId>(i)))] = {
        {"walks", c.walks},
        {"succeeded", c.succeeded},
        {"unmutated", c.unmutated},
        {"unmutated_succeeded", c.unmutated_succeeded}};
  }
  json modes = json::object();
  for (size_t i = 0; i < by_mode_.size(); ++i) {
    modes[std::string(name_of(static_cast<Mode>(i)))] = {{"walks", by_mode_[i].walks},
                                                         {"succeeded", by_mode_[i].succeeded}};
  }
  json walkers = json::object();
  for (size_t i = 0; i < by_walker_.size(); ++i) {
    const Counts& c = by_walker_[i];
    if (c.walks == 0) continue;
    walkers[std::string(name_of(static_cast<WalkerId>(i)))] = {
        {"walks", c.walks},
        {"succeeded", c.succeeded},
        {"unmutated", c.unmutated},
        {"unmutated_succeeded", c.unmutated_succeeded},
        {"contained", c.contained}};
  }
  json codes = json::object();
  for (size_t i = 0; i < error_codes_.size(); ++i) {
    if (error_codes_[i] != 0) codes[std::to_string(-static_cast<int>(i))] = error_codes_[i];
  }
  json unavailable = json::object();
  for (const auto& [scenario, reason] : session_.unavailable()) {
    unavailable[std::string(name_of(scenario))] = reason;
  }
  json line = {{"t", elapsed()},
               {"startup", first_walk_ == 0 ? 0 : first_walk_ - process_start_},
               {"walks", walks_},
               {"succeeded", succeeded_},
               {"mutated", mutated_},
               {"unmutated_java", unmutated_java_},
               {"unmutated_java_succeeded", unmutated_java_succeeded_},
               {"findings", findings_},
               {"executions", executions_},
               {"contained", contained_},
               {"sanitizer_reports_elsewhere", sanitizer::reports_elsewhere()},
               {"by_scenario", scenarios},
               {"by_mode", modes},
               {"by_walker", walkers},
               {"error_codes", codes},
               {"unavailable", unavailable},
               {"halts", session_.halts()},
               {"rss_kb", resident_kb()}};
  if (reached_.count() != 0) line["edges"] = reached_.count();
  stats_file_ << line.dump() << '\n';
  stats_file_.flush();
  if (!stats_file_) {
    throw std::system_error(ENOSPC, std::generic_category(),
                            "writing " + (folder_ / "stats.jsonl").string());
  }
  for (auto& [key, bucket] : buckets_) {
    if (bucket.counts.count == bucket.written_count) continue;
    bucket.written_count = bucket.counts.count;
    append(count_line(key, bucket.counts).dump());
  }
}

}  // namespace framestorm
