#include "scripts/native/coverage.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "harness/executor/run_writer.h"
#include "harness/input/seed_folder.h"
#include "harness/jvm/modules.h"

namespace framestorm {
namespace {

using nlohmann::json;

struct CorpusInput {
  std::filesystem::path file;
  Input input;
  bool walked = false;
  size_t edges = 0;
  size_t added = 0;              // features that no input before it had
  size_t added_in_scenario = 0;  // ... no input of its scenario
  size_t compared = 0;           // counters that one of two walks left nonzero
  size_t identical = 0;          // of them, those equal after both
};

// How a walk ended: what engines are told of it beside coverage (fuzz/feedback.h), more finely.
std::pair<WalkEnd, int> end_of(const Outcome& outcome) {
  if (outcome.end != WalkEnd::returned || outcome.result <= 0) {
    return {outcome.end, outcome.end == WalkEnd::returned ? outcome.result : 0};
  }
  return {outcome.end, static_cast<int>(std::bit_width(static_cast<unsigned>(outcome.result)))};
}

std::vector<std::filesystem::path> files_of(const CoverageOptions& options) {
  std::vector<std::filesystem::path> files = options.inputs;
  if (!options.list.empty()) {
    std::ifstream list(options.list);
    if (!list) throw SetupError("cannot read " + options.list.string());
    for (std::string line; std::getline(list, line);) {
      if (!line.empty()) files.emplace_back(line);
    }
  }
  if (files.empty()) throw SetupError("coverage needs at least one input");
  return files;
}

class Corpus {
 public:
  explicit Corpus(const CoverageOptions& options)
      : options_(options), session_(options.session), writer_(options.out, session_, counts_) {
    for (const auto& file : files_of(options)) {
      inputs_.push_back({.file = file, .input = load_input_file(file)});
      inputs_.back().input.halt = HaltPoint{};
    }
    if (!coverage().available()) {
      throw SetupError(session_.jvm().library_path().string() +
                       " has no coverage counters: give --jdk instrumented");
    }
    seen_.assign(coverage().counters().size(), 0);
  }

  // False when the process had to end after a walk.
  bool measure() {
    for (const ScenarioId scenario : session_.available()) {
      const bool wanted = std::ranges::any_of(
          inputs_, [&](const CorpusInput& input) { return input.input.scenario == scenario; });
      for (int i = 0; wanted && i < options_.halts; ++i) {
        session_.halt_world(scenario, HaltPoint{}, static_cast<uint64_t>(i) * 7919);
        session_.run_loop([&] {
          for (CorpusInput& input : inputs_) {
            if (input.input.scenario == scenario && !not_reusable_) walk(&input);
          }
          session_.on_control_thread([] {});
        });
        if (not_reusable_) return false;
      }
    }
    return true;
  }

  void write() {
    json edges = json::array();
    const Modules modules = Modules::snapshot();
    for (const Coverage::Edge& edge : coverage().edges()) {
      const Module* module = modules.find(edge.pc);
      edges.push_back({{"pc", edge.pc - (module == nullptr ? 0 : module->base)},
                       {"entry", edge.is_function_entry()}});
    }
    json scenarios = json::object();
    for (const auto& [scenario, reached] : reached_) {
      json indices = json::array();
      for (size_t i = 0; i < reached.size(); ++i) {
        if (reached[i] != 0) indices.push_back(i);
      }
      scenarios[std::string(name_of(scenario))] = indices;
    }
    json inputs = json::array();
    for (const CorpusInput& input : inputs_) {
      inputs.push_back({{"file", input.file.string()},
                        {"scenario", std::string(name_of(input.input.scenario))},
                        {"walked", input.walked},
                        {"edges", input.edges},
                        {"added", input.added},
                        {"added_in_scenario", input.added_in_scenario},
                        {"compared", input.compared},
                        {"identical", input.identical}});
    }
    const json all = {{"libjvm", session_.jvm().library_path().string()},
                      {"edges", edges},
                      {"scenarios", scenarios},
                      {"inputs", inputs},
                      {"not_reusable", not_reusable_}};
    write_file(options_.out / "coverage.json", all.dump() + "\n");
  }

 private:
  Coverage& coverage() { return session_.executor().coverage(); }

  std::vector<uint8_t> counters_after(const Input& input, Outcome* outcome) {
    const std::span<uint8_t> counters = coverage().counters();
    std::ranges::fill(counters, uint8_t{0});
    writer_.executing(input);
    *outcome = session_.executor().execute(input);
    return {counters.begin(), counters.end()};
  }

  // Loop's stack.
  void walk(CorpusInput* input) {
    Outcome outcome;
    const std::vector<uint8_t> first = counters_after(input->input, &outcome);
    not_reusable_ = outcome.not_reusable;
    if (outcome.status != Outcome::Status::walked) return;
    input->walked = true;
    const auto end = end_of(outcome);
    std::vector<uint8_t> second = first;
    if (!not_reusable_) second = counters_after(input->input, &outcome);
    not_reusable_ = not_reusable_ || outcome.not_reusable;
    auto& reached = reached_[input->input.scenario];
    reached.resize(first.size());
    if (ends_[input->input.scenario].insert(end).second) {
      ++input->added;
      ++input->added_in_scenario;
    }
    size_t edges = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      if (first[i] == 0 && second[i] == 0) continue;
      ++input->compared;
      if (first[i] == second[i]) ++input->identical;
      if (first[i] == 0) continue;
      ++edges;
      const uint8_t feature = std::bit_floor(first[i]);
      if ((seen_[i] & feature) == 0) ++input->added;
      if ((reached[i] & feature) == 0) ++input->added_in_scenario;
      seen_[i] |= feature;
      reached[i] |= feature;
    }
    input->edges = std::max(input->edges, edges);
  }

  const CoverageOptions& options_;
  Session session_;
  RunCounts counts_;
  RunWriter writer_;
  std::vector<CorpusInput> inputs_;
  std::vector<uint8_t> seen_;                           // features, one bit each, by counter
  std::map<ScenarioId, std::vector<uint8_t>> reached_;  // the same, of one scenario
  std::map<ScenarioId, std::set<std::pair<WalkEnd, int>>> ends_;
  bool not_reusable_ = false;
};

}  // namespace

int run_coverage(const CoverageOptions& options) {
  Corpus corpus(options);
  const bool whole = corpus.measure();
  corpus.write();
  return whole ? 0 : 3;
}

}  // namespace framestorm
