#include "harness/executor/run_counts.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/base/clock.h"

namespace framestorm {
namespace {

using nlohmann::json;

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

}  // namespace

RunCounts::RunCounts() : process_start_(process_start_s()) {}

void RunCounts::Counts::note(const Outcome& outcome) {
  ++walks;
  if (outcome.succeeded()) ++succeeded;
  if (outcome.unmutated) ++unmutated;
  if (outcome.unmutated && outcome.succeeded()) ++unmutated_succeeded;
  if (outcome.end != WalkEnd::returned) ++contained;
  contained_faults += outcome.contained_faults;
  if (outcome.put_together) ++put_together;
  if (outcome.unmutated && outcome.end == WalkEnd::returned) {
    count_error(outcome.result, &unmutated_errors);
  }
}

void RunCounts::count_error(int32_t result, ErrorCodes* codes) {
  if (result > 0) return;
  const auto code = static_cast<size_t>(-static_cast<int64_t>(result));
  ++(*codes)[std::min(code, codes->size() - 1)];
}

json RunCounts::record_of(const ErrorCodes& codes) {
  json record = json::object();
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] != 0) record[std::to_string(-static_cast<int>(i))] = codes[i];
  }
  return record;
}

void RunCounts::note(const Input& input, const Outcome& outcome) {
  ++executions_;
  if (outcome.status != Outcome::Status::walked) return;
  if (walks() == 0) first_walk_ = now_s();
  findings_ += outcome.findings.size();
  all_.note(outcome);
  by_scenario_[static_cast<size_t>(input.scenario)].note(outcome);
  by_mode_[static_cast<size_t>(input.mode)].note(outcome);
  by_walker_[static_cast<size_t>(input.walker)].note(outcome);
  if (outcome.end == WalkEnd::returned) count_error(outcome.result, &error_codes_);
  // A depth of 0 asks for no frames, and some scenarios stand where a walker may give none by
  // design; three registers alone do not say where Java begins, and some walkers choose.
  const ScenarioInfo& scenario = scenario_info(input.scenario);
  const WalkerTraits& walker = traits_of(input.walker);
  const bool is_called =
      !walker.keeps_its_traces || outcome.end != WalkEnd::returned || outcome.result == 0;
  if (!is_called) {
    ++by_walker_[static_cast<size_t>(input.walker)].not_called;
    return;
  }
  const bool chose = walker.chooses_its_threads && outcome.end == WalkEnd::returned;
  if (walker.keeps_its_traces && outcome.kept) ++kept_;
  if (outcome.unmutated && outcome.kept && scenario.java && !walker.needs_registers_only &&
      (!chose || outcome.succeeded()) && input.call.depth == DepthKind::normal &&
      scenario.asgct_percent == 100) {
    ++unmutated_java_;
    if (outcome.succeeded()) ++unmutated_java_succeeded_;
    if (walker.keeps_its_traces) ++unmutated_java_untold_;
  }
}

void RunCounts::note_answer(const Input& input, const Outcome& answer) {
  Counts& counts = by_walker_[static_cast<size_t>(input.walker)];
  ++counts.asked_at_poll;
  if (answer.result > 0) ++counts.answered_at_poll;
  if (answer.result > 0 && !answer.at_first_poll) ++counts.unarmed_at_poll;
  findings_ += answer.findings.size();
}

void RunCounts::note_recorded(const RecordedVerdict& recorded) {
  ++recorded_[recorded.verdict];
  if (recorded.verdict == RecordedVerdict::kWrong) ++findings_;
}

void RunCounts::note_stored(uint64_t stored, bool only_good) {
  Counts& profiler = by_walker_[static_cast<size_t>(WalkerId::profiler)];
  all_.succeeded += stored - profiler.succeeded;
  profiler.succeeded = stored;
  counted_ = kept_;
  could_store_ = only_good ? unmutated_java_untold_ : kept_;
}

double RunCounts::elapsed() const { return first_walk_ == 0 ? 0 : now_s() - first_walk_; }

uint64_t RunCounts::unmutated_java() const {
  return unmutated_java_ - (counted_ == 0 ? unmutated_java_untold_ : 0);
}

// A profiler does not say which walks it has stored: as many of these as of all. One that stores what
// it could walk has stored these before others.
uint64_t RunCounts::unmutated_java_succeeded() const {
  if (could_store_ == 0) return unmutated_java_succeeded_;
  const Counts& profiler = by_walker_[static_cast<size_t>(WalkerId::profiler)];
  const double share =
      std::min(static_cast<double>(profiler.succeeded) / static_cast<double>(could_store_), 1.0);
  return unmutated_java_succeeded_ +
         static_cast<uint64_t>(share * static_cast<double>(unmutated_java_untold_));
}

json RunCounts::summary() const {
  const auto record_of_counts = [](const Counts& counts) {
    return json{{"walks", counts.walks},
                {"succeeded", counts.succeeded},
                {"unmutated", counts.unmutated},
                {"unmutated_succeeded", counts.unmutated_succeeded},
                {"unmutated_errors", record_of(counts.unmutated_errors)}};
  };
  json scenarios = json::object();
  for (const ScenarioInfo& info : all_scenarios()) {
    const Counts& counts = by_scenario_[static_cast<size_t>(info.id)];
    if (counts.walks != 0) scenarios[std::string(info.name)] = record_of_counts(counts);
  }
  json modes = json::object();
  for (const Mode mode : all_of<Mode>()) {
    const Counts& counts = by_mode_[static_cast<size_t>(mode)];
    modes[std::string(name_of(mode))] = {{"walks", counts.walks}, {"succeeded", counts.succeeded}};
  }
  json walkers = json::object();
  for (const WalkerTraits& walker : kWalkers) {
    const Counts& counts = by_walker_[static_cast<size_t>(walker.id)];
    if (counts.walks == 0) continue;
    json& record = walkers[std::string(walker.name)] = record_of_counts(counts);
    record["contained"] = counts.contained;
    record["contained_faults"] = counts.contained_faults;
    if (counts.asked_at_poll != 0) {
      record["asked_at_poll"] = counts.asked_at_poll;
      record["answered_at_poll"] = counts.answered_at_poll;
      record["unarmed_at_poll"] = counts.unarmed_at_poll;
    }
    if (counts.put_together != 0) record["put_together"] = counts.put_together;
    if (walker.keeps_its_traces) {
      for (const auto& [verdict, count] : recorded_) {
        record["recorded"][std::string(verdict)] = count;
      }
      record["counted"] = counted_;
      record["not_called"] = counts.not_called;
    }
  }
  return {{"t", elapsed()},
          {"startup", first_walk_ == 0 ? 0 : first_walk_ - process_start_},
          {"walks", walks()},
          {"succeeded", all_.succeeded},
          {"unmutated", all_.unmutated},
          {"unmutated_java", unmutated_java()},
          {"unmutated_java_succeeded", unmutated_java_succeeded()},
          {"findings", findings_},
          {"executions", executions_},
          {"contained", contained()},
          {"by_scenario", scenarios},
          {"by_mode", modes},
          {"by_walker", walkers},
          {"error_codes", record_of(error_codes_)}};
}

}  // namespace framestorm
