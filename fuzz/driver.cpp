#include "fuzz/driver.h"

#include <signal.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "fuzz/bench.h"
#include "fuzz/code_names.h"
#include "fuzz/feedback.h"
#include "fuzz/fuzz_engine.h"
#include "fuzz/halt_schedule.h"
#include "fuzz/mutator.h"
#include "fuzz/novelty.h"
#include "fuzz/options.h"
#include "fuzz/strict_end.h"
#include "fuzz/walker_choice.h"
#include "harness/executor/session.h"
#include "harness/executor/survey.h"
#include "harness/input/binary.h"
#include "harness/input/seed_folder.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

// How long the world stays halted at one set of points, in processor time: a halt has as many walks
// on a busy machine as on an idle one, and halting the world takes no larger share.
constexpr uint64_t kHaltNs = 30'000'000;
// The same where inputs come from elsewhere, at a tenth of the rate.
constexpr uint64_t kFollowedHaltNs = 200'000'000;
constexpr double kStatsPeriodS = 0.5;
// In the output folder: what sanitizers said outside walks.
constexpr const char* kSanitizerLog = "sanitizer.log";
// A walk that did not return leaves what it had in HotSpot's arenas, some 45 bytes on average:
// after so many a fresh process is cheaper than its memory.
constexpr uint64_t kMostContained = 1'000'000;
// Clock readings are worth a walk in ten; one in so many executions is enough.
constexpr uint64_t kClockShare = 8;
// libFuzzer's own work on an execution costs as much as a walk, and more with coverage to look at:
// an execution is a burst of walks, chains of mutants of the input, each of the one before, and the
// input itself.
constexpr unsigned kChains = 2;
constexpr unsigned kChainLength = 4;
// Mutants that wait for the engine to execute them; more are dropped, and found again.
constexpr size_t kMostPromising = 8;
// Of a scenario: as many as a process finds in an hour or so.
constexpr size_t kMostFinds = 1024;
constexpr size_t kSaturatedEnds = 3;
constexpr unsigned kStopLimitS = 20;
// An artifact is walked at this many halts, every other one its own, as long as it shows nothing.
constexpr int kReplayHalts = 16;
constexpr double kReplaySeconds = 4;

std::atomic<bool> asked_to_stop{false};

uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(t.tv_nsec);
}

// By this process, which while the world is halted means by the loop.
uint64_t used_ns() { return now_ns(CLOCK_PROCESS_CPUTIME_ID); }

class Driver final : public InputLoop {
 public:
  Driver(std::string_view target, const FuzzOptions& options)
      : target_(target),
        options_(options),
        session_(options.session),
        writer_(options.out, session_, counts_),
        survey_(session_, writer_),
        walkers_(options.walkers, find_mutator_profile(target)->walkers, session_.missing_walkers(),
                 options.modes),
        schedule_(session_.available().empty() ? std::vector{ScenarioId::c1} : session_.available(),
                  walkers_.modes(), options.seed),
        rng_(options.seed) {
    MutatorProfile profile = *find_mutator_profile(target);
    profile.scenarios = session_.available();
    profile.modes = walkers_.modes();
    profile.walkers = walkers_.walkers();
    mutator_ = std::make_unique<Mutator>(profile, &names_);
    if (options.bench) bench_ = std::make_unique<Bench>(session_);
  }

  // Control thread. Does not return: the process ends from the loop.
  [[noreturn]] void run() {
    if (options_.unguided) load_seeds();
    if (options_.engine.source != InputSource::engine) {
      session_.executor().set_rigour(Rigour::everything);
      chains_ = 0;
    }
    records_edges_ = coverage().available() && (options_.record_edges || !engine_.mutates_here());
    if (!engine_.mutates_here()) chains_ = 0;
    session_.run_loop([this] {
      try {
        if (engine_.mutates_here()) next_halt();
        engine_.run(options_, coverage(), *this);
      } catch (const std::exception& error) {
        fail(error);
      }
    });
    end_process(kExitDone);
  }

  // No exception may pass libFuzzer's frames: what cannot be written ends the process here.
  void execute(std::span<const uint8_t> bytes) override {
    try {
      walk_one_input(bytes);
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  void idle() override {
    if (asked_to_stop.load(std::memory_order_relaxed)) finish(kExitDone);
  }

  [[noreturn]] void end(int code) override { finish(code); }

  size_t mutate(uint8_t* data, size_t size, size_t max_size, unsigned seed) override {
    mutates_ = true;
    if (!promising_.empty()) {
      mutated_ = std::move(promising_.back());
      promising_.pop_back();
    } else {
      take({data, size}, &mutated_);
      Rng rng(seed);
      mutator_->mutate(&mutated_, rng);
    }
    return write(mutated_, data, max_size);
  }

  size_t cross(std::span<const uint8_t> a, std::span<const uint8_t> b, std::span<uint8_t> out,
               unsigned seed) override {
    decode(a, &input_);
    decode(b, &other_);
    Rng rng(seed);
    mutator_->crossover(input_, other_, &mutated_, rng);
    return write(mutated_, out.data(), out.size());
  }

 private:
  Coverage& coverage() { return session_.executor().coverage(); }

  [[noreturn]] void fail(const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(target_).c_str(), error.what());
    end_process(kExitSetup);
  }

  void walk_one_input(std::span<const uint8_t> bytes) {
    take(bytes, &input_);
    const Feedback::Cell seed = options_.unguided ? cell_of_seed(bytes) : Feedback::kNothing;
    if (walkers_.choose(&input_)) {
      encode(input_, &chosen_bytes_);
      bytes = chosen_bytes_;
    }
    if (options_.engine.source == InputSource::origin && executions_ == 0) learn_origin();
    if (!engine_.mutates_here()) {
      follow(input_, bytes);
    } else if (!mutates_) {
      place(input_, bytes);
    }
    // An engine that does not know the counters does not zero them.
    if (options_.unguided) std::ranges::fill(coverage().counters(), uint8_t{0});
    // First, since the engine looks at the counters when this returns.
    for (unsigned chain = 0; chain < chains_ && (mutates_ || !options_.bundled); ++chain) {
      walk_mutants();
    }
    const Feedback::Cell cell = walk(input_, bytes);
    if (records_edges_) writer_.reached(coverage().counters());
    if (chains_ != 0) novelty_.told(coverage().counters());
    feedback_.note(cell);
    feedback_.tell(options_.unguided ? seed : cell);
    // Last, so that the next input is already one of the new halt.
    if (++executions_ % kClockShare == 0) check_clock();
  }

  // A chain of mutants of the input. Counters are zero before and after.
  void walk_mutants() {
    const std::span<uint8_t> counters = coverage().counters();
    bool found = false;
    mutant_ = start_of_chain();
    for (unsigned i = 0; i < kChainLength; ++i) {
      mutator_->mutate(&mutant_, rng_);
      encode(mutant_, &mutant_bytes_);
      const Feedback::Cell cell = walk(mutant_, mutant_bytes_);
      if (records_edges_) writer_.reached(counters);
      const bool new_edges = novelty_.take(counters);
      const bool new_cell = feedback_.note(cell);
      if (options_.unguided || (!new_edges && !new_cell)) continue;
      remember(mutant_);
      // What the engine has not seen yet is the next that it is given: one of a chain, the last.
      if (found) {
        promising_.back() = mutant_;
      } else if (promising_.size() < kMostPromising) {
        promising_.push_back(mutant_);
        found = true;
      }
    }
  }

  // The engine's input, or one that was news in this scenario. Engines pick among the inputs of all
  // scenarios, and what is news in one means little in another.
  const Input& start_of_chain() {
    const std::vector<Input>& finds = finds_[static_cast<size_t>(scenario_)];
    return finds.empty() || rng_.one_in(2) ? input_ : finds[rng_.below(finds.size())];
  }

  void remember(const Input& input) {
    std::vector<Input>& finds = finds_[static_cast<size_t>(scenario_)];
    if (finds.size() < kMostFinds) {
      finds.push_back(input);
    } else {
      finds[rng_.below(finds.size())] = input;
    }
  }

  // Unguided, each seed has a cell of its own and nothing else has any: engines keep only inputs
  // that bring something new, and the seeds are to be their corpus.
  void load_seeds() {
    std::vector<Input> inputs;
    std::vector<uint8_t> bytes;
    for (const auto& folder : options_.corpus) {
      std::string error;
      if (!load_seed_folder(folder, &inputs, &error)) throw SetupError(error);
    }
    for (const Input& input : inputs) {
      encode(input, &bytes);
      seeds_.emplace(std::string(bytes.begin(), bytes.end()), seeds_.size() % Feedback::kCells);
    }
  }

  Feedback::Cell cell_of_seed(std::span<const uint8_t> bytes) const {
    const auto seed =
        seeds_.find(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return seed == seeds_.end() ? Feedback::kNothing : seed->second;
  }

  // Whether a scenario's walks all end the same few ways, as those of threads that a walker
  // refuses.
  bool is_saturated(ScenarioId scenario) const {
    return feedback_.ends_of(scenario) <= kSaturatedEnds;
  }

  // `bytes`: the encoding of `input`. Returns how it ended.
  Feedback::Cell walk(const Input& input, std::span<const uint8_t> bytes) {
    writer_.executing(input, bytes);
    const Outcome outcome = session_.executor().execute(input);
    if (bench_ != nullptr) bench_->observe(bytes, outcome);
    const Feedback::Cell cell = Feedback::cell_of(input, outcome, session_.executor().last_frame(0),
                                                  session_.executor().last_frame(1));
    if (options_.strict) {
      const std::vector<Finding> found = *outcome.findings;  // recording one walks again
      for (const Finding& finding : found) {
        if (ends_here(finding)) die_strictly(outcome, finding);
      }
    }
    counts_.note(input, outcome);
    survey_.take(input, outcome);
    if (session_.executor().not_reusable() || counts_.contained() >= kMostContained) wear_out();
    if (options_.runs != 0 && counts_.walks() >= options_.runs) finish(kExitDone);
    return cell;
  }

  // Decodes, unless it is what was written last, which is most often the case: libFuzzer executes
  // and mutates on what the mutator has just given it.
  void take(std::span<const uint8_t> bytes, Input* out) {
    if (std::ranges::equal(bytes, encoded_)) {
      if (out != &mutated_) *out = mutated_;
    } else {
      decode(bytes, out);
    }
  }

  size_t write(const Input& input, uint8_t* out, size_t max_size) {
    encode(input, &encoded_);
    if (encoded_.size() > max_size) return 0;
    std::copy(encoded_.begin(), encoded_.end(), out);
    return encoded_.size();
  }

  // Halts the world for an input that comes from elsewhere: its scenario, halted, as long as others
  // of it follow. The same bytes again are always walked at the same halt, because AFL++ takes what
  // differs then for noise.
  void follow(const Input& input, std::span<const uint8_t> bytes) {
    if (std::ranges::equal(bytes, followed_)) return;
    followed_.assign(bytes.begin(), bytes.end());
    const bool there = halt_start_ != 0 && input.scenario == scenario_;
    if (there && (options_.one_halt || used_ns() - halt_start_used_ <= kFollowedHaltNs)) {
      return;
    }
    halt_at(input.scenario, input.mode);
  }

  // An input that nobody made for the present halt: one that the engine reads from a file. The
  // victims of most scenarios are halted at any time, those of some only for their own.
  void place(const Input& input, std::span<const uint8_t> bytes) {
    if (options_.engine.source == InputSource::files) {
      replay(input, bytes);
    } else if (input.scenario != scenario_ && Victims::is_transient(input.scenario)) {
      halt_at(input.scenario, input.mode);
    }
  }

  // Of a process that makes one artifact smaller: not at the first finding, but at the artifact's.
  bool ends_here(const Finding& finding) {
    if (options_.engine.source != InputSource::origin) return true;
    const uint64_t key = survey_.signatures().key_of(finding);
    if (learns_) origin_key_ = key;
    return !learns_ && (!origin_key_ || key == *origin_key_);
  }

  void learn_origin() {
    std::vector<uint8_t> bytes;
    encode(options_.engine.origin, &bytes);
    learns_ = true;
    replay(options_.engine.origin, bytes);
    learns_ = false;
  }

  // Walks an artifact at one halt after the other. A finding ends the process; without one, the
  // same artifact again gets one halt only.
  void replay(const Input& input, std::span<const uint8_t> bytes) {
    if (const auto missing = session_.unavailable().find(input.scenario);
        missing != session_.unavailable().end()) {
      std::fprintf(stderr, "%s: its scenario %s is not available on this JDK: %s\n",
                   std::string(target_).c_str(), std::string(name_of(input.scenario)).c_str(),
                   missing->second.c_str());
      return;
    }
    const bool again = std::ranges::equal(bytes, followed_);
    followed_.assign(bytes.begin(), bytes.end());
    const uint64_t start = now_ns();
    for (int i = 0; i < (again ? 1 : kReplayHalts); ++i) {
      if (static_cast<double>(now_ns() - start) > kReplaySeconds * 1e9) break;
      const bool seek = (i + static_cast<int>(executions_)) % 2 == 0;
      halt_at(input.scenario, input.mode, seek ? input.halt : HaltPoint{});
      walk(input, bytes);
      if (origin_key_) break;
    }
  }

  void check_clock() {
    idle();
    if (!engine_.mutates_here()) return;
    if (!options_.bundled && options_.runs == 0 && counts_.elapsed() > options_.seconds) {
      finish(kExitDone);
    }
    if (used_ns() - halt_start_used_ > kHaltNs) next_halt();
  }

  // Loop's stack.
  void next_halt() {
    if (const Input& origin = options_.engine.origin;
        options_.engine.source == InputSource::origin) {
      halt_at(origin.scenario, origin.mode, origin.halt);
      return;
    }
    const auto [scenario, mode] =
        schedule_.next([this](ScenarioId id) { return is_saturated(id); });
    halt_at(scenario, mode);
  }

  // Loop's stack.
  void halt_at(ScenarioId scenario, Mode mode, const HaltPoint& halt = {}) {
    const Coverage::Aside aside(coverage());
    if (bench_ != nullptr) bench_->end_halt(halt_mode_, now_ns() - halt_start_);
    session_.on_control_thread([this, scenario, mode, &halt] {
      session_.halt_world(scenario, halt, rng_.next());
      refresh_names();
      mutator_->pin(scenario, mode);
      scenario_ = scenario;
      halt_mode_ = mode;
      if (counts_.elapsed() - last_stats_ > kStatsPeriodS) {
        last_stats_ = counts_.elapsed();
        write_figures();
      }
    });
    promising_.clear();
    novelty_.forget();
    survey_.recheck(scenario_);
    if (session_.executor().not_reusable()) wear_out();
    halt_start_ = now_ns();
    halt_start_used_ = used_ns();
  }

  void write_figures() {
    writer_.write_stats();
    survey_.write_counts();
  }

  // Control thread.
  void refresh_names() {
    const CodeMap& code_map = session_.jvm().code_map();
    if (names_epoch_ == code_map.epoch()) return;
    names_epoch_ = code_map.epoch();
    names_.clear();
    for (const CodeEntry& entry : code_map.entries()) {
      // Of nmethods only the victims' own: what else got compiled is chance, and would mean nothing
      // in the process that replays the artifact.
      if (entry.kind == CodeKind::nmethod && !entry.name.starts_with("framestorm/")) continue;
      names_.add({{entry.kind, entry.tier, CodeAnchor::entry, entry.name},
                  static_cast<uint32_t>(entry.end - entry.begin)});
    }
    engine_.tell(names_);
  }

  // Loop's stack. Says and writes what libFuzzer would: nobody takes SIGABRT from the guard.
  [[noreturn]] void die_strictly(const Outcome& outcome, const Finding& finding) {
    const auto in_out_folder = [this](std::string_view name) {
      return (options_.out / "artifacts" / name).string();
    };
    survey_.take_unminimized(outcome);
    write_figures();
    session_.on_control_thread([&] {
      try {
        end_process(report_crash(
            finding, writer_.with_halt(finding.input),
            options_.engine.artifact ? options_.engine.artifact : ArtifactPath(in_out_folder)));
      } catch (const std::exception& error) {
        fail(error);
      }
    });
    std::abort();
  }

  // Loop's stack. Nothing was found, but this process must not walk on.
  [[noreturn]] void wear_out() {
    if (options_.bundled) {
      std::fprintf(stderr,
                   "INFO: framestorm: this process ends after %lu executions: it abandoned a walk "
                   "that held a lock, or too many; start another one\n",
                   executions_);
    }
    finish(options_.engine.worn_out);
  }

  // Loop's stack.
  [[noreturn]] void finish(int code) {
    if (bench_ != nullptr) bench_->measure_depths();
    session_.on_control_thread([this, code] {
      // A thread that a walk destroyed must not run any more.
      if (!session_.executor().not_reusable()) session_.release_world();
      write_figures();
      if (bench_ != nullptr) bench_->report(stdout);
      std::fflush(stdout);
      end_process(code);
    });
    std::abort();
  }

 private:
  std::string_view target_;
  const FuzzOptions& options_;
  FuzzEngine& engine_ = FuzzEngine::get();
  Session session_;
  RunCounts counts_;
  RunWriter writer_;
  Survey survey_;
  WalkerChoice walkers_;
  CodeNameList names_;
  uint64_t names_epoch_ = 0;
  HaltSchedule schedule_;
  Rng rng_;
  std::unique_ptr<Mutator> mutator_;
  std::unique_ptr<Bench> bench_;
  Input input_;
  Input mutated_;
  Input other_;
  std::vector<uint8_t> encoded_;  // mutated_, as it was last written
  std::vector<uint8_t> chosen_bytes_;
  std::vector<uint8_t> followed_;  // the input that follow() saw last
  Input mutant_;
  std::vector<uint8_t> mutant_bytes_;
  std::vector<Input> promising_;
  std::array<std::vector<Input>, kScenarios> finds_;
  Feedback feedback_;
  Novelty novelty_;
  std::map<std::string, Feedback::Cell, std::less<>> seeds_;  // by their bytes; unguided only
  unsigned chains_ = kChains;
  bool records_edges_ = false;
  bool mutates_ = false;  // the engine has read its corpus
  bool learns_ = false;   // what the artifact that is made smaller shows
  std::optional<uint64_t> origin_key_;
  ScenarioId scenario_ = ScenarioId::c1;
  Mode halt_mode_ = Mode::same_thread;
  uint64_t halt_start_ = 0;
  uint64_t halt_start_used_ = 0;
  uint64_t executions_ = 0;
  double last_stats_ = 0;
};

// Async-signal-safe. A process that cannot even end (nobody else ends AFL++'s) is ended.
void on_stop_signal(int) {
  asked_to_stop.store(true);
  alarm(kStopLimitS);
}

}  // namespace

int run_target(std::string_view target, int argc, char** argv) {
  FuzzOptions options;
  if (const int code = parse_options(target, argc, argv, &options); code >= 0) return code;
  return run_target(target, std::move(options));
}

int run_target(std::string_view target, FuzzOptions options) {
  try {
    if (!options.out.empty()) std::filesystem::create_directories(options.out);
    if (const int code = FuzzEngine::get().prepare(&options); code >= 0) return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(target).c_str(), error.what());
    return kExitSetup;
  }
  struct sigaction action = {};
  action.sa_handler = &on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  int code = kExitDone;
  // Not on the primordial thread, whose stack HotSpot does not like to measure.
  std::thread control_thread([&] {
    try {
      if (!options.out.empty()) options.session.sanitizer_log = options.out / kSanitizerLog;
      Driver driver(target, options);
      driver.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", std::string(target).c_str(), error.what());
      end_process(kExitSetup);
    }
  });
  control_thread.join();
  return code;
}

}  // namespace framestorm
