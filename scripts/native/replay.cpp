#include "scripts/native/replay.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "harness/executor/minimizer.h"
#include "harness/executor/poll_answer.h"
#include "harness/executor/recorded_trace.h"
#include "harness/executor/survey.h"
#include "harness/input/binary.h"
#include "harness/input/json_form.h"
#include "harness/input/seed_folder.h"
#include "harness/input/thread_state.h"
#include "harness/victim/scenario.h"
#include "harness/walkers/profiler.h"
#include "scripts/native/signature_file.h"

namespace framestorm {
namespace {

using nlohmann::json;

constexpr uint32_t kMinimizeBudget = 2000;

// A try that has found nothing ends after this time: seeking a halt point can take long.
constexpr std::chrono::seconds kSearchTime{4};
// Halts of a scenario that is not where it should be often enough, times those asked for.
constexpr int kMostHaltsTimes = 10;
// Misses of the artifact's own halt point after which it is not sought any more: this JVM's code
// does not have it.
constexpr int kSeekMisses = 4;
// Halts a try gets in any case.
constexpr int kLeastHalts = 16;

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
  for (const WalkerTraits& walker : kWalkers) {
    if (!walker.needs_running_vm && !session.missing_walkers().contains(walker.id)) {
      walkers.push_back(walker.id);
    }
  }
  return walkers;
}

class Try {
 public:
  explicit Try(const ReplayOptions& options)
      : options_(options),
        input_(load_input_file(options.artifact)),
        // Every victim, as where it was found: which code there is, and which other victims
        // `other-sp` picks from, depends on them.
        session_(options.session),
        writer_(options.out, session_, counts_),
        survey_(session_, writer_) {
    require_available(session_, input_.scenario);
    require_walker(session_, input_.walker);
    if (!options.signature.empty()) signature_.emplace(options.signature);
    session_.executor().set_rigour(Rigour::everything);
    session_.executor().watch_writes(WriteWatching::Pace::each_walk);
  }

  // Halts the victim again and again until the walk shows what is looked for. True when it did;
  // then the world is still halted there, unless that showed later.
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
        writer_.executing(input_);
        outcome_ = session_.executor().execute(input_);
        found = wanted(outcome_.findings);
        if (!outcome_.findings.empty()) {
          ++findings_;
          survey_.take_unminimized(outcome_);
        }
        trace_ = session_.executor().last_trace();
        session_.on_control_thread([] {});
      });
      ++walks_;
      if (found || (!outcome_.not_reusable && found_later())) return true;
      if (outcome_.not_reusable) break;
    }
    return false;
  }

  Input minimized() {
    Input smallest = input_;
    if (!session_.halted()) return smallest;  // of what shows later only
    session_.run_loop([&] {
      smallest = minimize(
          input_,
          [&](const Input& candidate) {
            writer_.executing(candidate);
            return wanted(session_.executor().execute(candidate).findings);
          },
          kMinimizeBudget);
      session_.on_control_thread([] {});
    });
    if (smallest.halt.any && !Victims::is_transient(smallest.scenario)) {
      smallest.halt = session_.describe_halt(session_.victims().of(smallest.scenario));
    }
    return smallest;
  }

  void write_result(bool found) {
    json trace = json::array();
    for (const auto& frame : trace_) {
      if (trace.size() == 64) break;
      trace.push_back({{"method", frame.method}, {"bci", frame.bci}});
    }
    json result = input_record(input_);
    if (!options_.session.walker_plugin.empty()) {
      result["walker_plugin"] = options_.session.walker_plugin;
    }
    result.update({{"found", found},
                   {"halts", halts_},
                   {"walks", walks_},
                   {"at_halt_point", at_halt_point_},
                   {"findings", findings_},
                   {"unresolved", outcome_.unresolved},
                   {"not_judged", not_judged_record(session_.executor().not_judged())},
                   {"walk",
                    {{"end", outcome_.end == WalkEnd::returned ? "returned" : "contained"},
                     {"num_frames", outcome_.result},
                     {"trace", trace}}}});
    write_file(options_.out / "replay.json", result.dump(2) + "\n");
    writer_.write_stats();
    survey_.write_counts();
  }

  bool not_reusable() const { return outcome_.not_reusable; }

 private:
  // What shows of the walk once its thread runs on.
  bool found_later() {
    Outcome later;
    if (outcome_.has_request) later = answer_at_poll(session_, input_, outcome_);
    Profiler* const profiler = session_.profiler();
    if (profiler != nullptr && input_.walker == WalkerId::profiler && outcome_.unmutated) {
      let_store(session_, input_.scenario);
      const RecordedVerdict judged = judge_recorded(
          profiler->new_traces(), session_.victims().of(input_.scenario), profiler->traits());
      if (judged.verdict == RecordedVerdict::kWrong) {
        later.findings.push_back(finding_of(judged, input_));
      }
    }
    if (later.findings.empty()) return false;
    ++findings_;
    survey_.take_unminimized(later);
    return wanted(later.findings);
  }

  bool wanted(const std::vector<Finding>& findings) const {
    return std::ranges::any_of(findings, [&](const Finding& finding) {
      return !signature_ || signature_->matches(finding);
    });
  }

  const ReplayOptions& options_;
  Input input_;
  Session session_;
  RunCounts counts_;
  RunWriter writer_;
  Survey survey_;
  std::optional<SignatureFile> signature_;
  Outcome outcome_;
  std::vector<NamedFrame> trace_;
  int halts_ = 0;
  int walks_ = 0;
  int findings_ = 0;
  int at_halt_point_ = 0;
};

// Walks of one scenario, added up for the answer of `scenarios`.
class ScenarioWalks {
 public:
  ScenarioWalks(Session& session, const ScenarioInfo& info) : session_(session), info_(info) {}

  void halt_and_walk(uint64_t random) {
    if (!session_.halt_world(info_.id, HaltPoint{}, random).focus_there) return;
    const Victim& victim = session_.victims().of(info_.id);
    where_ = session_.executor().addresses().describe(victim.pc, victim);
    session_.executor().watch_writes(halts_++ == 0 ? WriteWatching::Pace::each_walk
                                                   : WriteWatching::Pace::share_of_time);
    session_.run_loop([&] {
      for (const WalkerId walker : walkers_of(session_)) {
        for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) walk(walker, mode);
      }
      session_.on_control_thread([] {});
    });
    judge_stored();
  }

  void compare_with_reference() {
    // Where walkers refuse or stop short by design there is nothing to compare.
    if (!info_.java || info_.asgct_percent != 100 || info_.halt == Halt::special) return;
    for (const WalkerId walker : walkers_of(session_)) {
      const WalkerTraits& traits = traits_of(walker);
      const bool stops = traits.ends_where_it_distrusts_a_frame && !info_.asgct_trace.empty();
      if (stops || traits.needs_registers_only || traits.chooses_its_threads ||
          !traits.is_fuzzed()) {
        continue;
      }
      session_.halt_world(info_.id, HaltPoint{}, 0);
      const std::string difference = session_.compare_with_gst(info_.id, walker);
      if (!difference.empty()) wrong_.push_back(said_of(walker, "reference: " + difference));
    }
  }

  // Whether AsyncGetCallTrace, of which the table's figures are, walked as often as it should.
  bool enough() const {
    const auto own = by_walker_.find(std::string(name_of(kDefaultWalker)));
    return !info_.java || own == by_walker_.end() ||
           (*own)["succeeded"].get<int>() * 100 >= expected_percent() * (*own)["walks"].get<int>();
  }

  // Adds what was found to the scenario's entry.
  void write(json* entry) const {
    const std::string asgct(name_of(kDefaultWalker));
    const json own = by_walker_.value(asgct, json::object());
    (*entry)["walks"] = own.value("walks", 0);
    (*entry)["succeeded"] = own.value("succeeded", 0);
    (*entry)["error_codes"] = own.value("error_codes", json::object());
    (*entry)["expected_percent"] = expected_percent();
    (*entry)["by_walker"] = by_walker_;
    (*entry)["wrong"] = wrong_;
  }

 private:
  static constexpr size_t kShownFrames = 48;

  // One halt in a hundred may meet the victim elsewhere: at a safepoint poll, in a prologue.
  int expected_percent() const { return std::min(info_.asgct_percent, 99); }

  void walk(WalkerId walker, Mode mode) {
    Input input;
    input.scenario = info_.id;
    input.mode = mode;
    input.walker = walker;
    Executor& executor = session_.executor();
    const Outcome outcome = executor.execute(input);
    if (outcome.status != Outcome::Status::walked) return;
    json& counts = by_walker_[std::string(name_of(walker))];
    if (counts.is_null()) {
      counts = {{"walks", 0}, {"succeeded", 0}, {"right", 0}, {"error_codes", json::object()}};
    }
    const auto count = [](json& value) { value = value.is_null() ? 1 : value.get<int>() + 1; };
    if (traits_of(walker).chooses_its_threads) counts["chooses"] = true;
    const Victim& victim = session_.victims().of(info_.id);
    const ThreadLayout& layout = session_.jvm().layout();
    const bool refused_by_design = traits_of(walker).needs_pc_of_anchor && !outcome.succeeded() &&
                                   is_outside_java(victim.thread_state(layout)) &&
                                   victim.is_anchor_without_pc(layout);
    if (!refused_by_design) count(counts["walks"]);
    if (outcome.succeeded()) {
      count(counts["succeeded"]);
      if (!counts.contains("frames")) counts["frames"] = names_of(executor.last_trace());
    } else if (outcome.end == WalkEnd::returned) {
      count(counts["error_codes"][std::to_string(outcome.result)]);
    }
    if (outcome.succeeded() && outcome.findings.empty()) count(counts["right"]);
    if (outcome.put_together) count(counts["put_together"]);
    if (outcome.stopped != nullptr) count(counts["stopped"][outcome.stopped]);
    for (const Finding& finding : outcome.findings) {
      wrong_.push_back(said_of(walker, std::string(name_of(finding.kind)) + " " + finding.clause +
                                           ": " + finding.detail + ", halted at " + where_));
    }
  }

  // What a profiler has stored of the walk just made: its thread's newest trace.
  void judge_stored() {
    Profiler* const profiler = session_.profiler();
    if (profiler == nullptr || session_.executor().not_reusable()) return;
    let_store(session_, info_.id);
    json& recorded = by_walker_[std::string(name_of(WalkerId::profiler))]["recorded"];
    if (recorded.is_null()) recorded = {{"right", 0}, {"short", 0}, {"wrong", 0}, {"missing", 0}};
    const RecordedVerdict judged =
        judge_recorded(profiler->new_traces(), session_.victims().of(info_.id), profiler->traits());
    json& count = recorded[std::string(judged.verdict)];
    count = count.get<int>() + 1;
    if (judged.verdict != RecordedVerdict::kRight) {
      wrong_.push_back(said_of(WalkerId::profiler, std::string(judged.verdict) + ": " + judged.why +
                                                       ", halted at " + where_));
    }
  }

  static std::string said_of(WalkerId walker, const std::string& text) {
    return std::string(name_of(walker)) + ": " + text;
  }

  static json names_of(const std::vector<NamedFrame>& frames) {
    json names = json::array();
    for (size_t i = 0; i < std::min(frames.size(), kShownFrames); ++i) {
      names.push_back(frames[i].method);
    }
    return names;
  }

  Session& session_;
  const ScenarioInfo& info_;
  std::string where_;
  int halts_ = 0;
  json by_walker_ = json::object();
  json wrong_ = json::array();
};

// The process's stdout, kept for one answer: what the JVM prints there goes to stderr meanwhile.
class StdoutAnswer {
 public:
  StdoutAnswer() : fd_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)) {
    if (fd_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
      throw SetupError(std::string("cannot redirect stdout: ") + std::strerror(errno));
    }
  }
  StdoutAnswer(const StdoutAnswer&) = delete;
  StdoutAnswer& operator=(const StdoutAnswer&) = delete;
  ~StdoutAnswer() {
    dup2(fd_, STDOUT_FILENO);
    close(fd_);
  }

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(fd_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0)
        throw SetupError(std::string("cannot write the answer: ") + std::strerror(errno));
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

 private:
  int fd_;
};

// The process ends as it stands: a thread that a walk destroyed must not run any more.
[[noreturn]] void leave_halted() {
  std::fflush(stdout);
  std::_Exit(kNotReusable);
}

}  // namespace

int run_replay(const ReplayOptions& options) {
  Try one_try(options);
  const bool found = one_try.search();
  one_try.write_result(found);
  if (one_try.not_reusable()) leave_halted();
  return 0;
}

int run_minimize(const ReplayOptions& options) {
  if (options.signature.empty()) throw SetupError("minimize needs --signature");
  Try one_try(options);
  const bool found = one_try.search();
  if (found && !one_try.not_reusable()) {
    std::vector<uint8_t> bytes;
    encode(one_try.minimized(), &bytes);
    write_file(options.out / "minimized.bin", bytes);
  }
  one_try.write_result(found);
  if (one_try.not_reusable()) leave_halted();
  return 0;
}

int run_scenarios(const SessionOptions& options, int halts) {
  const StdoutAnswer answer;
  Session session(options);
  session.executor().set_rigour(Rigour::everything);
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
    if (missing == session.unavailable().end()) {
      ScenarioWalks walks(session, info);
      for (int i = 0; i < halts || (i < kMostHaltsTimes * halts && !walks.enough()); ++i) {
        walks.halt_and_walk(static_cast<uint64_t>(i) * 7919);
      }
      walks.compare_with_reference();
      walks.write(&entry);
    }
    all.push_back(entry);
  }
  session.release_world();
  answer.write(all.dump(2) + "\n");
  return 0;
}

}  // namespace framestorm
