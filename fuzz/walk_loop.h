// A target's session, and what is done at its halts: one input is walked, judged and recorded, the
// world is halted anew, the process ends. Who brings the inputs, and when the world is halted,
// others know (driver.h, halt_policy.h). The loop's stack, unless said otherwise.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "fuzz/code_names.h"
#include "fuzz/feedback.h"
#include "fuzz/fuzz_engine.h"
#include "fuzz/mutant_walks.h"
#include "fuzz/mutator_rng.h"
#include "fuzz/options.h"
#include "harness/executor/survey.h"

namespace framestorm {

// Looks on while a loop walks (bench.h); this one does nothing. Loop's stack.
class LoopWatcher {
 public:
  LoopWatcher() = default;
  virtual ~LoopWatcher() = default;
  LoopWatcher(const LoopWatcher&) = delete;
  LoopWatcher& operator=(const LoopWatcher&) = delete;

  // After each walk of the loop, with the bytes of its input.
  virtual void walked(std::span<const uint8_t>, const Outcome&) {}
  // The world is still halted, as it was for `ns` and while its victim went on.
  virtual void halt_ends(Mode, uint64_t) {}
  virtual void loop_ends() {}
  // Control thread, last of all.
  virtual void report(FILE*) const {}
};

class WalkLoop {
 public:
  // Whether the process ends at a finding of that key (signature.h).
  using EndsAt = std::function<bool(uint64_t key)>;

  // Control thread. Starts the JVM; throws SetupError. The options have to outlive it.
  WalkLoop(std::string_view target, const FuzzOptions& options, FuzzEngine& engine);

  Session& session() { return session_; }
  Coverage& coverage() { return session_.executor().coverage(); }
  const RunCounts& counts() const { return counts_; }
  Rng& rng() { return rng_; }
  // Code of the victims and of HotSpot that inputs may name, as of the halt.
  const CodeNameList& names() const { return names_; }

  // Unset: findings are surveyed, and the process goes on.
  void end_at(EndsAt ends_at) { ends_at_ = std::move(ends_at); }
  // Called whenever the world is halted anew.
  void on_halt(std::function<void()> told) { told_ = std::move(told); }
  // From now on the edges that reached() sees are written to edges.jsonl.
  void record_edges() { records_edges_ = true; }

  // `bytes`: the encoding of `input`. Returns how it ended. Ends the process where it has to end.
  Feedback::Ending walk(const Input& input, std::span<const uint8_t> bytes);
  // Coverage counters of a walk, which were zero before it.
  void reached(std::span<const uint8_t> counters) {
    if (records_edges_) writer_.reached(counters);
  }
  // Halts the world anew. Coverage counters stay as they are.
  void halt_at(ScenarioId scenario, Mode mode, const HaltPoint& halt = {});
  // In the same halt, the victim goes on by some instructions, where it can.
  void step_on();
  // The same on a way, at each instruction of which one of `walkers`, which is not empty, walks it unmutated.
  void walk_along(std::span<const WalkerId> walkers);
  // What the world was last halted for.
  ScenarioId scenario() const { return scenario_; }
  Mode mode() const { return mode_; }
  // By processor time: a halt has as many walks on a busy machine as on an idle one.
  bool is_halted_longer_than(uint64_t ns) const;

  // Walks each scenario of Java once, unmutated, and judges what the profiler has stored of that; no
  // more without one that tells its traces. Before other walks: theirs would be among them.
  void judge_recorded();

  // End the process; the second with what went wrong, on any stack.
  [[noreturn]] void finish(int code);
  [[noreturn]] void fail(const std::exception& error);

 private:
  bool moved(const std::function<bool()>& move);
  void refresh_names();
  void write_figures();
  void let_run(ScenarioId scenario);
  void count_stored(bool at_the_end);
  void answer_asked();
  [[noreturn]] void wear_out();
  [[noreturn]] void die_at(const Outcome& outcome, const Finding& finding);

  std::string_view target_;
  const FuzzOptions& options_;
  FuzzEngine& engine_;
  Session session_;
  RunCounts counts_;
  RunWriter writer_;
  Survey survey_;
  std::unique_ptr<MutantWalks> mutants_;
  CodeNameList names_;
  uint64_t names_epoch_ = 0;
  std::unique_ptr<LoopWatcher> watcher_;
  EndsAt ends_at_;
  std::function<void()> told_ = [] {};
  std::optional<Input> asked_;  // whose request is answered when this halt ends
  bool records_edges_ = false;
  Rng rng_;
  ScenarioId scenario_ = ScenarioId::c1;
  Mode mode_ = Mode::same_thread;
  uint64_t halt_start_ns_ = 0;
  uint64_t halt_start_used_ns_ = 0;
  uint64_t moving_ns_ = 0;  // of this halt, in which its victim went on
  double last_figures_ = 0;
};

}  // namespace framestorm
