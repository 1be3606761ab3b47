#include "fuzz/walk_loop.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "fuzz/bench.h"
#include "fuzz/strict_end.h"
#include "harness/base/clock.h"
#include "harness/executor/poll_answer.h"
#include "harness/executor/recorded_trace.h"
#include "harness/input/binary.h"
#include "harness/walkers/profiler.h"

namespace framestorm {
namespace {

constexpr double kFiguresPeriodS = 0.5;
// A walk that did not return leaves what it had in HotSpot's arenas, some 45 bytes on average:
// after so many a fresh process is cheaper than its memory.
constexpr uint64_t kMostContained = 1'000'000;

// By this process, which while the world is halted means by the loop.
uint64_t used_ns() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

// Of walks with a request, one is answered when the halt ends: the first, or one of so many later ones.
constexpr uint32_t kAskedShare = 64;
// Unmutated ones are as rare as that, and of their answers more is known.
constexpr uint32_t kAskedShareOfUnmutated = 2;

// Instructions of a way: a call with prologue, body and epilogue.
constexpr int kWayLength = 128;

}  // namespace

WalkLoop::WalkLoop(std::string_view target, const FuzzOptions& options, FuzzEngine& engine)
    : target_(target),
      options_(options),
      engine_(engine),
      session_(options.session),
      writer_(options.out, session_, counts_),
      survey_(session_, writer_),
      mutants_(options.mutants.empty()
                   ? nullptr
                   : std::make_unique<MutantWalks>(options.mutants, session_, writer_,
                                                   survey_.signatures())),
      watcher_(options.bench ? std::make_unique<Bench>(session_) : std::make_unique<LoopWatcher>()),
      rng_(options.seed) {}

Feedback::Ending WalkLoop::walk(const Input& input, std::span<const uint8_t> bytes) {
  Executor& executor = session_.executor();
  writer_.executing(input, bytes);
  if (mutants_) mutants_->begin();
  const Outcome outcome = executor.execute(input);
  watcher_->walked(bytes, outcome);
  const Feedback::Ending ending =
      Feedback::ending_of(input, outcome, executor.last_frame(0), executor.last_frame(1));
  if (ends_at_) {
    for (const Finding& finding : outcome.findings) {
      if (ends_at_(survey_.signatures().key_of(finding))) die_at(outcome, finding);
    }
  }
  counts_.note(input, outcome);
  const uint32_t asked_one_in = outcome.unmutated ? kAskedShareOfUnmutated : kAskedShare;
  if (outcome.has_request && (!asked_ || rng_.one_in(asked_one_in))) asked_ = input;
  survey_.take(input, outcome);
  if (mutants_) mutants_->look(input, outcome);
  const bool spoiled = mutants_ && mutants_->spoiled();
  if (executor.not_reusable() || spoiled || counts_.contained() >= kMostContained) wear_out();
  if (options_.runs != 0 && counts_.walks() >= options_.runs) finish(kExitDone);
  return ending;
}

void WalkLoop::halt_at(ScenarioId scenario, Mode mode, const HaltPoint& halt) {
  const Coverage::Aside aside(coverage());
  watcher_->halt_ends(mode_, monotonic_ns() - halt_start_ns_ - moving_ns_);
  answer_asked();
  scenario_ = scenario;
  mode_ = mode;
  session_.on_control_thread([&] {
    const bool due = counts_.elapsed() - last_figures_ > kFiguresPeriodS;
    if (due) count_stored(/*at_the_end=*/false);
    session_.halt_world(scenario, halt, rng_.next());
    refresh_names();
    if (due) write_figures();
  });
  told_();
  survey_.recheck(scenario);
  if (session_.executor().not_reusable()) wear_out();
  moving_ns_ = 0;
  halt_start_ns_ = monotonic_ns();
  halt_start_used_ns_ = used_ns();
}

void WalkLoop::step_on() {
  const Coverage::Aside aside(coverage());
  if (moved([&] { return session_.step_on(scenario_, rng_.next()); })) told_();
}

// By what moves a halted victim, on the control thread.
bool WalkLoop::moved(const std::function<bool()>& move) {
  const uint64_t begin = monotonic_ns();
  bool moved = false;
  session_.on_control_thread([&] { moved = move(); });
  moving_ns_ += monotonic_ns() - begin;
  return moved;
}

void WalkLoop::walk_along(std::span<const WalkerId> walkers) {
  const Coverage::Aside aside(coverage());
  // Nearly all are unmutated here, and mutated requests are to be answered, too.
  const std::optional<Input> asked = asked_;
  const std::span<uint8_t> counters = coverage().counters();
  Input input;
  input.scenario = scenario_;
  input.mode = mode_;
  std::vector<uint8_t> bytes;
  int steps = 0;
  for (; steps < kWayLength && moved([&] { return session_.step_once(scenario_); }); ++steps) {
    input.walker = walkers[rng_.below(walkers.size())];
    encode(input, &bytes);
    if (records_edges_) std::ranges::fill(counters, uint8_t{0});
    walk(input, bytes);
    reached(counters);
  }
  asked_ = asked;
  if (steps > 0) told_();
}

// World halted. The walk is made once more, since others were made meanwhile; it ends the halt.
void WalkLoop::answer_asked() {
  const std::optional<Input> asked = std::exchange(asked_, std::nullopt);
  if (!asked) return;
  const Input& input = *asked;
  writer_.executing(input);
  const Outcome walked = session_.executor().execute(input);
  if (session_.executor().not_reusable()) wear_out();
  if (!walked.has_request) return;
  const Input there = writer_.with_halt(input);
  Outcome answer;
  session_.on_control_thread([&] {
    if (mutants_) mutants_->begin();
    answer = answer_at_poll(session_, input, walked);
    counts_.note_answer(input, answer);
    survey_.take_unminimized(answer);
  });
  if (!mutants_) return;
  mutants_->look_at_answer(there, answer, rng_.next());
  if (session_.executor().not_reusable() || mutants_->spoiled()) wear_out();
}

void WalkLoop::judge_recorded() {
  Profiler* const profiler = session_.profiler();
  if (profiler == nullptr || !profiler->counts()) return;
  struct Stored {
    Input input;
    Victim victim;  // its thread; a virtual one may have another carrier later
  };
  std::vector<Stored> stored;
  session_.on_control_thread([&] { profiler->new_traces(); });
  for (const ScenarioId scenario : session_.available()) {
    if (!scenario_info(scenario).java) continue;
    halt_at(scenario, Mode::same_thread);
    Input input;
    input.scenario = scenario;
    input.walker = WalkerId::profiler;
    writer_.executing(input);
    const Outcome outcome = session_.executor().execute(input);
    counts_.note(input, outcome);
    survey_.take(input, outcome);
    if (session_.executor().not_reusable()) wear_out();
    const bool is_called = outcome.status == Outcome::Status::walked &&
                           outcome.end == WalkEnd::returned && outcome.result == 0;
    if (is_called && outcome.kept) {
      const Victim& walked = session_.victims().of(scenario);
      Stored& one = stored.emplace_back(Stored{writer_.with_halt(input), {}});
      one.victim.scenario = scenario;
      one.victim.tid = walked.tid;
      one.victim.java_id = walked.java_id;
    }
    session_.on_control_thread([&] { let_store(session_, scenario); });
  }
  session_.on_control_thread([&] {
    const std::vector<RecordedTrace> traces = profiler->new_traces();
    for (const Stored& one : stored) {
      const RecordedVerdict judged =
          framestorm::judge_recorded(traces, one.victim, profiler->traits());
      counts_.note_recorded(judged);
      if (judged.verdict != RecordedVerdict::kWrong) continue;
      Outcome found;
      found.findings.push_back(finding_of(judged, one.input));
      survey_.take_unminimized(found);
    }
  });
}

// The process's clock adds up that of all its threads: asked only when the other one says so, too.
bool WalkLoop::is_halted_longer_than(uint64_t ns) const {
  return monotonic_ns() - halt_start_ns_ > ns && used_ns() - halt_start_used_ns_ > ns;
}

// Control thread.
void WalkLoop::refresh_names() {
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

// Control thread, world released.
void WalkLoop::let_run(ScenarioId scenario) {
  constexpr timespec kPause = {0, 1'000'000};
  constexpr uint64_t kEnoughNs = 1'000'000;
  constexpr int kMostPauses = 200;
  const int tid = session_.victims().of(scenario).tid;
  const uint64_t begin = thread_cpu_ns(tid);
  session_.victims().resume(scenario);
  for (int i = 0; i < kMostPauses && thread_cpu_ns(tid) - begin < kEnoughNs; ++i) {
    nanosleep(&kPause, nullptr);
  }
  session_.victims().pause(scenario);
}

// Control thread. Releases the world: a profiler takes its own locks for that.
void WalkLoop::count_stored(bool at_the_end) {
  Profiler* const profiler = session_.profiler();
  if (profiler == nullptr) return;
  session_.release_world();
  // JFR's samples are stored by their threads, which may be suspended between halts. Not all at
  // once: many are busy.
  for (const ScenarioId scenario : session_.available()) {
    if (at_the_end && scenario_info(scenario).halt == Halt::busy) let_run(scenario);
  }
  if (const auto stored = profiler->stored(at_the_end)) {
    counts_.note_stored(*stored, profiler->has_own_thread());
  }
}

void WalkLoop::write_figures() {
  last_figures_ = counts_.elapsed();
  writer_.write_stats();
  survey_.write_counts();
}

// Says and writes what libFuzzer would: nobody takes SIGABRT from the guard.
void WalkLoop::die_at(const Outcome& outcome, const Finding& finding) {
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

// Nothing was found, but this process must not walk on.
void WalkLoop::wear_out() {
  std::fprintf(stderr,
               "INFO: framestorm: this process ends after %lu walks: it abandoned a walk that held "
               "a lock, or too many, or is not as it began; start another one\n",
               counts_.walks());
  finish(options_.engine.worn_out);
}

void WalkLoop::finish(int code) {
  watcher_->loop_ends();
  session_.on_control_thread([this, code] {
    // A thread that a walk destroyed must not run any more.
    if (!session_.executor().not_reusable()) {
      session_.release_world();
      count_stored(/*at_the_end=*/true);
    }
    write_figures();
    watcher_->report(stdout);
    end_process(code);
  });
  std::abort();
}

void WalkLoop::fail(const std::exception& error) {
  std::fprintf(stderr, "%s: %s\n", std::string(target_).c_str(), error.what());
  end_process(kExitSetup);
}

}  // namespace framestorm
