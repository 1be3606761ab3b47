#include "scripts/native/replay.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "harness/engine/minimizer.h"
#include "harness/engine/recorder.h"
#include "harness/input/binary.h"
#include "harness/input/seed_folder.h"
#include "harness/victim/scenario.h"
#include "scripts/native/signature_file.h"

namespace framestorm {
namespace {

using nlohmann::json;

constexpr uint32_t kMinimizeBudget = 2000;

// A try that has found nothing ends after this time: seeking a halt point can take long.
constexpr std::chrono::seconds kSearchTime{4};
// Misses of the artifact's own halt point after which it is not sought any more: this JVM's code
// does not have it.
constexpr int kSeekMisses = 4;
// Halts a try gets in any case.
constexpr int kLeastHalts = 16;

Input load(const std::filesystem::path& artifact) {
  Input input;
  std::string error;
  if (!load_input_file(artifact, &input, &error)) throw SetupError(error);
  return input;
}

void require_available(const Session& session, ScenarioId scenario) {
  const auto it = session.unavailable().find(scenario);
  if (it != session.unavailable().end()) {
    throw SetupError("scenario " + std::string(name_of(scenario)) +
                     " is not available on this JDK: " + it->second);
  }
}

void require_walker(const Session& session, WalkerId walker) {
  const auto it = session.missing_walkers().find(walker);
  if (it != session.missing_walkers().end()) {
    throw SetupError("no walker " + std::string(name_of(walker)) + ": " + it->second);
  }
}

// Those that walk a halted world.
std::vector<WalkerId> walkers_of(const Session& session) {
  std::vector<WalkerId> walkers;
  for (unsigned i = 0; i < static_cast<unsigned>(WalkerId::count); ++i) {
    const auto id = static_cast<WalkerId>(i);
    if (id != WalkerId::gst && !session.missing_walkers().contains(id)) walkers.push_back(id);
  }
  return walkers;
}

class Try {
 public:
  explicit Try(const ReplayOptions& options)
      : options_(options),
        input_(load(options.artifact)),
        // Every victim, as where it was found: which code there is, and which other victims
        // `other-sp` picks from, depends on them.
        session_(options.session),
        recorder_(options.out, session_) {
    require_available(session_, input_.scenario);
    require_walker(session_, input_.walker);
    if (!options.signature.empty()) signature_.emplace(options.signature);
    session_.engine().set_rigour(Rigour::everything);
  }

  // Halts the victim again and again until the walk shows what is looked for. True when it did;
  // then the world is still halted there.
  bool search() {
    std::mt19937_64 random(std::random_device{}());
    const auto deadline = std::chrono::steady_clock::now() + kSearchTime;
    int misses = 0;
    while (halts_ < options_.halts &&
           (halts_ < kLeastHalts || std::chrono::steady_clock::now() < deadline)) {
      // Every other halt is wherever the victim happens to be.
      const bool seek = !input_.halt.any && halts_ % 2 == 0 && misses < kSeekMisses &&
                        std::chrono::steady_clock::now() < deadline;
      const auto halted =
          session_.halt_world(input_.scenario, seek ? input_.halt : HaltPoint{}, random());
      ++halts_;
      if (!halted.focus_there) continue;
      if (seek) ++(halted.at_halt_point ? at_halt_point_ : misses);
      bool found = false;
      session_.run_loop([&] {
        recorder_.executing(input_, {});
        outcome_ = session_.engine().execute(input_);
        found = wanted(*outcome_.findings);
        if (!outcome_.findings->empty()) {
          ++findings_;
          recorder_.record_all(outcome_);
        }
        trace_ = session_.engine().last_trace();
        session_.on_conductor([] {});
      });
      ++walks_;
      if (found) return true;
      if (outcome_.poisoned) break;
    }
    return false;
  }

  Input minimized() {
    Input smallest = input_;
    session_.run_loop([&] {
      smallest = minimize(
          input_,
          [&](const Input& candidate) {
            recorder_.executing(candidate, {});
            return wanted(*session_.engine().execute(candidate).findings);
          },
          kMinimizeBudget);
      session_.on_conductor([] {});
    });
    if (smallest.halt.any && !Crew::is_transient(smallest.scenario)) {
      smallest.halt = session_.describe_halt(session_.crew().of(smallest.scenario));
    }
    return smallest;
  }

  void write_result(bool found) {
    json trace = json::array();
    for (const auto& frame : trace_) {
      if (trace.size() == 64) break;
      trace.push_back({{"method", frame.method}, {"bci", frame.bci}});
    }
    const json result = {{"found", found},
                         {"halts", halts_},
                         {"walks", walks_},
                         {"at_halt_point", at_halt_point_},
                         {"findings", findings_},
                         {"unresolved", outcome_.unresolved},
                         {"walk",
                          {{"end", outcome_.end == WalkEnd::returned ? "returned" : "contained"},
                           {"num_frames", outcome_.result},
                           {"trace", trace}}}};
    std::ofstream file(options_.out / "replay.json");
    file << result.dump(2) << '\n';
    file.flush();
    if (!file) throw SetupError("cannot write " + (options_.out / "replay.json").string());
    recorder_.write_stats();
  }

  bool poisoned() const { return outcome_.poisoned; }

 private:
  bool wanted(const std::vector<Finding>& findings) const {
    return std::ranges::any_of(findings, [&](const Finding& finding) {
      return !signature_ || signature_->matches(finding);
    });
  }

  const ReplayOptions& options_;
  Input input_;
  Session session_;
  Recorder recorder_;
  std::optional<SignatureFile> signature_;
  Outcome outcome_;
  std::vector<Engine::NamedFrame> trace_;
  int halts_ = 0;
  int walks_ = 0;
  int findings_ = 0;
  int at_halt_point_ = 0;
};

}  // namespace

int run_replay(const ReplayOptions& options) {
  Try one_try(options);
  const bool found = one_try.search();
  one_try.write_result(found);
  return one_try.poisoned() ? 3 : 0;
}

int run_minimize(const ReplayOptions& options) {
  if (options.signature.empty()) throw SetupError("minimize needs --signature");
  Try one_try(options);
  const bool found = one_try.search();
  if (found && !one_try.poisoned()) {
    std::vector<uint8_t> bytes;
    encode(one_try.minimized(), &bytes);
    std::ofstream file(options.out / "minimized.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.flush();
    if (!file) throw SetupError("cannot write " + (options.out / "minimized.bin").string());
  }
  one_try.write_result(found);
  return one_try.poisoned() ? 3 : 0;
}

int run_scenarios(const SessionOptions& options, int halts) {
  Session session(options);
  session.engine().set_rigour(Rigour::everything);
  json all = json::array();
  for (const ScenarioInfo& info : all_scenarios()) {
    if (!options.scenarios.empty() &&
        std::ranges::find(options.scenarios, info.id) == options.scenarios.end()) {
      continue;
    }
    json entry = {{"name", std::string(name_of(info.id))},
                  {"description", std::string(info.description)},
                  {"java", info.java}};
    const auto missing = session.unavailable().find(info.id);
    entry["available"] = missing == session.unavailable().end();
    entry["reason"] = missing == session.unavailable().end() ? "" : missing->second;
    if (missing != session.unavailable().end()) {
      all.push_back(entry);
      continue;
    }
    int walks = 0;
    int succeeded = 0;
    json wrong = json::array();
    json codes = json::object();
    json by_walker = json::object();
    std::vector<Engine::NamedFrame> frames;
    for (int i = 0; i < halts; ++i) {
      const auto halted = session.halt_world(info.id, HaltPoint{}, static_cast<uint64_t>(i) * 7919);
      if (!halted.focus_there) continue;
      session.run_loop([&] {
        for (const WalkerId walker : walkers_of(session)) {
          for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
            Input input;
            input.scenario = info.id;
            input.mode = mode;
            input.walker = walker;
            const Outcome outcome = session.engine().execute(input);
            if (outcome.status != Outcome::Status::walked) continue;
            json& counts = by_walker[std::string(name_of(walker))];
            if (counts.is_null()) counts = json::object();
            counts["walks"] = counts.value("walks", 0) + 1;
            counts["succeeded"] = counts.value("succeeded", 0) + (outcome.succeeded() ? 1 : 0);
            const bool asgct = walker == WalkerId::asgct;
            walks += asgct ? 1 : 0;
            if (outcome.succeeded()) {
              succeeded += asgct ? 1 : 0;
              if (asgct || frames.empty()) frames = session.engine().last_trace();
            } else if (asgct && outcome.end == WalkEnd::returned) {
              const std::string code = std::to_string(outcome.result);
              codes[code] = codes.value(code, 0) + 1;
            }
            for (const Finding& finding : *outcome.findings) {
              wrong.push_back((asgct ? "" : std::string(name_of(walker)) + ": ") +
                              std::string(name_of(finding.kind)) + " " + finding.clause + ": " +
                              finding.detail);
            }
          }
        }
        session.on_conductor([] {});
      });
    }
    // Where walkers refuse or stop short by design there is nothing to compare.
    const bool comparable = info.java && info.asgct_percent == 100 && info.halt != Halt::special;
    for (const WalkerId walker : walkers_of(session)) {
      const bool by_design = (walker == WalkerId::asgct && !info.asgct_trace.empty()) ||
                             // Frozen frames are in the heap, where only the reference looks.
                             info.id == ScenarioId::virtual_remounted ||
                             walker == WalkerId::asgst_frame || walker == WalkerId::plugin;
      if (!comparable || by_design) continue;
      session.halt_world(info.id, HaltPoint{}, 0);
      const std::string difference = session.compare_with_gst(info.id, walker);
      if (!difference.empty()) {
        wrong.push_back("reference" +
                        (walker == WalkerId::asgct ? "" : " of " + std::string(name_of(walker))) +
                        ": " + difference);
      }
    }
    json names = json::array();
    for (const auto& frame : frames) {
      if (names.size() == 32) break;
      names.push_back(frame.method);
    }
    entry["walks"] = walks;
    entry["succeeded"] = succeeded;
    entry["error_codes"] = codes;
    entry["by_walker"] = by_walker;
    entry["expected_percent"] = info.asgct_percent;
    entry["wrong"] = wrong;
    entry["frames"] = names;
    all.push_back(entry);
  }
  session.release_world();
  std::cout << all.dump(2) << std::endl;
  return 0;
}

}  // namespace framestorm
