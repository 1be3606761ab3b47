// One process's fuzzing session: JVM, victims, guard and executor, and the halts between which
// victims move on.
//
//   set up ──> victims run ──> the world is halted ──> stacks and contexts ──> body runs on the
//                  ^           at new points            are copied               loop's stack
//                  └─────────────────────── released ───────────────────────────────┘
//
// Everything here is called on the control thread, the thread that constructed the session, on its
// own stack; what runs on the loop's stack may call on_control_thread() to get there.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/executor/executor.h"

namespace framestorm {

class Profiler;

struct SessionOptions {
  JvmOptions jvm;
  std::vector<ScenarioId> scenarios;  // empty: all
  bool start_victims = true;
  std::string walker_plugin;  // FILE[=OPTIONS]; empty: none
  std::string profiler;       // ProfilerSpec; empty: none
  GuardLimits limits;
  // What sanitizers say outside walks is appended here; empty: standard error.
  std::filesystem::path sanitizer_log;
};

class Session {
 public:
  // Starts JVM, guard and victims. Throws SetupError.
  explicit Session(const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Jvm& jvm() { return jvm_; }
  Victims& victims() { return *victims_; }
  Executor& executor() { return *executor_; }

  // Scenarios whose victim is in place, and why the others are not.
  const std::vector<ScenarioId>& available() const { return available_; }
  bool is_available(ScenarioId scenario) const {
    return std::ranges::find(available_, scenario) != available_.end();
  }
  const std::map<ScenarioId, std::string>& unavailable() const { return unavailable_; }
  // Walkers that the executor does not have, and why not.
  const std::map<WalkerId, std::string>& missing_walkers() const { return missing_walkers_; }

  // Of SessionOptions::profiler; null when none was asked for.
  Profiler* profiler() const { return profiler_; }

  // Lets victims run and halts the world at new points. `focus` is sure to have moved (and, when
  // its victims live only for a halt, to exist: false when that did not work). `halt` is where
  // focus is wanted, `any` for wherever it is.
  struct Halted {
    bool focus_there = false;    // focus has a halted victim
    bool at_halt_point = false;  // and it is where `halt` wanted it
  };
  Halted halt_world(ScenarioId focus, const HaltPoint& halt, uint64_t random);
  // World halted: the victim of `focus` alone goes on by some instructions of its own code, which are
  // compiled ones, stubs', the interpreter's, or its C functions'; or to where it comes to other code than
  // it is in, since frames are built there, and stubs jump on. It stops at the first instruction of what
  // these call. False, and it has not moved, where it is in other code, or does not move by itself.
  bool step_on(ScenarioId focus, uint64_t random);
  // The same by one instruction.
  bool step_once(ScenarioId focus);
  void release_world();
  bool halted() const { return halted_; }
  uint64_t halts() const { return halts_; }
  // Where a halt found its focus, or the focus went on to.
  uint64_t places() const { return halts_ + steps_on_; }

  // Runs `body` on the loop's stack; returns when it has.
  void run_loop(std::function<void()> body);
  // From the loop's stack: runs `fn` on the control thread's own stack, then goes on there.
  void on_control_thread(const std::function<void()>& fn);

  // The scenario's halt as an artifact would name it: its code position, if it is in the code
  // cache or (of a victim that moves by itself) in libjvm, and its distance from the stack base.
  HaltPoint describe_halt(const Victim& victim);

  // Compares a walker's unmutated trace of a halted victim with GetStackTrace after its release
  // (world released afterwards). Empty: they agree.
  std::string compare_with_gst(ScenarioId scenario, WalkerId walker = kDefaultWalker);

  // Walks through a walker that needs a running VM. World released.
  int32_t walk_running(Walker* walker, ScenarioId scenario, std::vector<Frame>* frames);

 private:
  void add_walkers(const SessionOptions& options);
  std::unique_ptr<Walker> make(const WalkerTraits& walker, const SessionOptions& options);
  void let_run(ScenarioId focus, uint64_t random);
  bool seek(Victim& victim, const HaltPoint& halt);
  // Within a goal that leaves open where the victim is to stay: in its own code.
  bool step_to(ScenarioId focus, StepGoal goal);
  // In which a victim needs no other thread; empty: it may need one.
  AddressRange own_code_around(uintptr_t pc);

  Jvm& jvm_;
  std::unique_ptr<Victims> victims_;
  std::unique_ptr<Executor> executor_;
  Profiler* profiler_ = nullptr;  // the executor's
  std::vector<ScenarioId> available_;
  std::map<ScenarioId, std::string> unavailable_;
  std::map<WalkerId, std::string> missing_walkers_;
  std::vector<ScenarioId> active_;  // resumed for the present halt
  bool halted_ = false;
  uint64_t halts_ = 0;
  uint64_t steps_on_ = 0;
  uint32_t deadlocks_ = 0;  // in a row
};

}  // namespace framestorm
