// Lets one thread run instruction by instruction, and has walkers walk it at each.
//
//   stepped thread                    trap handler, on the same thread
//   ───────────────────────────────   ─────────────────────────────────────────────────────────────
//   begin()         trap flag on ──>
//   an instruction               ──>  StackTruth::advance, every walker walks, verdicts are counted
//   ...
//   a call outside the code cache,
//   after some instructions there ──> its return address becomes the trampoline's, trap flag off
//   runs at full speed
//   returns into the trampoline   ──> return address and trap flag are back; goes on there
//   end()           trap flag off ──>
//
// HotSpot does not look at the return addresses of C++ functions that are called by C++ functions, and
// those are the only ones that are ever replaced.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/guard/guard.h"
#include "harness/jvm/libjvm_mutants.h"
#include "harness/oracles/oracle_set.h"
#include "harness/oracles/thread_subject.h"
#include "harness/stepping/code_catalog.h"
#include "harness/stepping/events.h"
#include "harness/stepping/method_versions.h"
#include "harness/stepping/nested_walk.h"
#include "harness/stepping/outside_walks.h"
#include "harness/stepping/stack_truth.h"
#include "harness/stepping/verdict.h"
#include "harness/victim/world.h"
#include "harness/walk/frame_buffer.h"
#include "harness/walk/walk_record.h"

namespace framestorm::stepping {

inline constexpr size_t kVerdicts = static_cast<size_t>(Verdict::count);
// What is counted apart: a walker in a mode.
inline constexpr size_t kColumns =
    static_cast<size_t>(WalkerId::count) * static_cast<size_t>(Mode::count);
constexpr size_t column_of(WalkerId walker, Mode mode = Mode::same_thread) {
  return static_cast<size_t>(mode) * static_cast<size_t>(WalkerId::count) +
         static_cast<size_t>(walker);
}

// What a walker has answered.
struct Tally {
  std::array<uint64_t, kVerdicts> verdicts = {};
  std::map<int32_t, uint64_t> errors;  // of refused ones, by code
};

// The first trace of a walker that was not right at an instruction, in this way.
struct Miss {
  Input input;  // leads there
  std::string clause, detail;
};

// One instruction of a blob.
struct Instruction {
  uint64_t steps = 0;
  std::array<std::array<uint32_t, kVerdicts>, kColumns> verdicts = {};  // no event in force
  std::map<std::pair<size_t, Verdict>, Miss> misses;  // by column_of(); of scenarios
};

// Where a program's thread stood: it does not come there again by itself.
struct ProgramHalt {
  int tid = 0;
  void* java_thread = nullptr;
  uint32_t thread_state = 0;
  uintptr_t last_java_sp = 0, last_java_pc = 0, last_java_fp = 0;
  uintptr_t stack_base = 0, stack_end = 0;
  std::array<greg_t, NGREG> registers = {};
  std::vector<std::byte> stack;  // from sp up, some of it
  int32_t depth = 0, result = 0;
};

// What is wrong in the same way: same walker, clause, section and code.
struct StepFinding {
  Verdict verdict = Verdict::wrong;  // `right`: an oracle found something else than the trace
  bool promised = true;       // false: a trace that is refused or short by a walker that may do so
  std::string section, code;  // code: the blob's name; empty where it is a Java method's
  uint64_t count = 0;
  std::map<std::string, uint64_t> scenarios;
  // Of what an event breaks; `none`: found without.
  StepEvent event = StepEvent::none;
  // The first one. Its input says where, for replay: an event's, where it was injected.
  Finding finding;
  // The first ones of some other scenarios: code of the JDK may not be compiled again as it was.
  std::vector<Finding> others;
  std::string position;
  std::vector<Frame> frames;
  std::vector<std::string> trace, truth;
  std::vector<std::string> path;            // the instructions that led there, the last one first
  std::shared_ptr<const ProgramHalt> halt;  // of a program
};

// At which instructions something is done that takes longer than a walk.
struct Sample {
  uint64_t first = 0;   // times that an instruction of the code cache is met
  uint64_t one_in = 0;  // of all others; 0: none
};

struct StepLimits {
  uint64_t native_steps = 32;  // walked of each stay outside the code cache
  // Where it is walked at all.
  Sample inside = {.first = UINT64_MAX, .one_in = 1};
  uint64_t most_steps = 0;  // of a thread, then it runs on; 0: no limit
  int32_t depth = 256;      // frames
  bool same_thread = true;  // whether the stepped thread is walked in its own handler
  Sample outside = {.first = 2, .one_in = 64};  // where it is walked from another thread
  std::vector<StepEvent> events = {};
  Sample events_at = {.first = 1, .one_in = 1024};  // of each event; with a known truth only
};

struct StepCounts {
  uint64_t steps = 0;         // traps
  uint64_t walked = 0;        // of these, walked by every walker
  uint64_t from_outside = 0;  // of these, walked from another thread, too
  uint64_t judged = 0;        // of those walked, with a known truth
  uint64_t seen_enough = 0;   // not walked: StepLimits::inside
  uint64_t passed = 0;        // not walked: outside the code cache for longer than the limit
  uint64_t excursions = 0;    // calls that ran at full speed
  uint64_t outside = 0;       // of those walked: not above the first activation
  std::map<std::string, uint64_t> lost;  // of those walked, why the truth was not known
};

class Stepper {
 public:
  // Borrows all of it. One per process. Throws std::invalid_argument for a walker that is null.
  Stepper(Jvm& jvm, std::vector<Walker*> walkers, const StepLimits& limits);
  ~Stepper();
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;

  // Control thread: the next thread that calls begin() is stepped, and is a victim of the scenario.
  // `only`: walked where that says and nowhere else (HaltPoint::occurrence does not count).
  void arm(ScenarioId scenario, const HaltPoint& only = {});
  // Whether events are injected into threads that are armed from now on. What is found without is
  // what the others are compared with. One event is injected into one thread: `turn` counts through
  // those that are wanted.
  void set_injecting(bool injecting, size_t turn = 0) {
    injecting_ = injecting;
    turn_ = turn;
  }
  // How often the armed thread was walked.
  uint64_t arrivals() const { return arrivals_; }
  // From now on walks that find nothing are made again with mutants of libjvm that act in them. Borrowed.
  // Where that one has another process go on, no further step is taken.
  void set_mutants(LibjvmMutants* mutants) { mutants_ = mutants; }
  // No further walk; the thread runs on at full speed from its next instruction in the code cache.
  void give_up() { given_up_.store(true, std::memory_order_release); }
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }
  bool stepping() const { return stepping_.load(std::memory_order_acquire); }
  // So far; a glance at what another thread counts.
  uint64_t steps_now() const { return steps_now_.load(std::memory_order_relaxed); }
  // The step at which an instruction was last walked that had not been before; and the last step at
  // which the truth was known.
  uint64_t last_new() const { return last_new_.load(std::memory_order_relaxed); }
  uint64_t last_known() const { return last_known_.load(std::memory_order_relaxed); }
  uint64_t found_now() const { return found_now_.load(std::memory_order_acquire); }

  // What natives call on a victim's thread, not in signal context: the thread is in a native method
  // that a Java method has called, which is where its stack begins to be known.
  void begin(JNIEnv* env);
  void end();

  // Control thread: the same for another thread, wherever it is. It runs on from there instruction by
  // instruction, in no scenario. `carrier`: of a virtual thread. False when it has no Java frames, is
  // not mounted there any more, or does not react.
  bool begin_on(jthread thread, jthread carrier);
  // Control thread: it runs on at full speed, wherever it has come to; it may be gone.
  void end_on();
  bool thread_is_gone() const;

  // Waits for the event that is under way. No thread is stepped. Throws SetupError when the VM does not
  // end it.
  void end_event() { events_.begin(scenario_); }
  // The same, and drops of the events' findings what plain stepping has found since.
  void settle();

  // While no thread is stepped.
  // Whether settle() would keep this one of findings().
  bool stands(const std::string& key) const;
  const StepCounts& counts() const { return counts_; }
  const std::map<std::string, std::array<Tally, kColumns>, std::less<>>& sections() const {
    return sections_;
  }
  const std::map<std::string, StepFinding>& findings() const { return findings_; }
  CodeCatalog& catalog() { return catalog_; }
  const CodeCatalog& catalog() const { return catalog_; }
  const Events& events() const { return events_; }
  // While an event was in force, by column.
  const std::map<StepEvent, std::array<Tally, kColumns>>& event_tallies() const {
    return event_tallies_;
  }
  // By offset.
  const std::map<uint32_t, Instruction>& instructions(const Blob& blob) const;
  const std::vector<Walker*>& walkers() const { return walkers_; }

 private:
  // What is known of the thread before its first step. False without Java frames.
  bool know(jthread thread, std::byte* java_thread, JNIEnv* env, int tid);
  // For the next thread.
  void reset(ScenarioId scenario, const HaltPoint& only);
  static StepAnswer on_trap(ucontext_t* context, bool single_step);
  StepAnswer take_in_walk(ucontext_t* context, bool single_step);
  StepAnswer take(ucontext_t* context, bool single_step);
  bool run_past(const Registers& now);
  bool is_wanted(const ucontext_t& context) const;
  void walk_all(const ucontext_t& context);
  bool is_in(const Sample& sample, const Instruction* instruction);
  // Each walker that walks in that mode.
  void walk_in(Mode mode, const ucontext_t& context, Instruction* instruction);
  void walk(size_t index, const ucontext_t& context, Instruction* instruction);
  // The walk alone.
  WalkRecord make(size_t index, const ucontext_t& context);
  // In the modes and at the instructions that are wanted.
  void walk_round(const ucontext_t& context, Instruction* instruction);
  ThreadSubject& subject() { return subjects_[static_cast<size_t>(mode_)]; }

  // mutant_walks.cpp
  class MutantWalks;
  // `record`, and whether it `was_right`: the walk without one.
  void try_mutants(size_t index, const ucontext_t& context, const WalkRecord& record,
                   const Instruction* instruction, bool was_right);

  // event_walks.cpp
  // Before the place that is wanted, which may be one that only an event leads to: whether one is to be
  // injected here.
  bool is_on_the_way();
  void inject(const ucontext_t& context, Instruction* instruction);
  StepEvent event_at(uintptr_t pc);
  void walk_nested(StepEvent event, const ucontext_t& context, Instruction* instruction);
  // One walk, after less than 2^power of its instructions.
  void interrupt(size_t index, uint64_t power, StepEvent event, const ucontext_t& context,
                 Instruction* instruction);
  // Whether the same is so without an event.
  struct Plain {
    std::string key;  // of the finding that it is without the event
    const Blob* blob = nullptr;
    uint32_t offset = 0;
  };
  bool is_so_without(const Plain& plain, size_t column, Verdict verdict) const;
  void keep_event(const Walker& walker, Verdict verdict, Finding finding);

  // step_verdicts.cpp
  // The trace in `frames` of the walk on record.
  Judgement judge_trace(const Walker& walker, const WalkRecord& record, const std::byte* frames);
  bool is_said_to_be_cut(const Walker& walker, const WalkRecord& record) const;
  NotedPlace noted_place();
  // What is judged anew of one that is not right: a replaced method's other versions are it.
  Judgement judge_by_versions(const Walker& walker, const Judgement& first,
                              const WalkRecord& record, bool cut);
  // That it gives all frames here.
  bool is_promised(const Walker& walker, const Judgement& judgement,
                   const WalkRecord& record) const;
  void count(const Walker& walker, const Judgement& judgement, const WalkRecord& record,
             Instruction* instruction);
  // Of the trace, that JVMTI is about to tell of.
  void wait_for_methods();
  // What is wrong with a trace that is not right.
  Finding finding_of(const Judgement& judgement, const WalkRecord& record) const;
  // What the other oracles say of the walk.
  void ask_oracles(const Walker& walker, const WalkRecord& record);

  // step_findings.cpp
  void keep(const Walker& walker, Verdict verdict, Finding finding, bool promised);
  void keep_first(StepFinding* kept, Verdict verdict, Finding finding);
  std::string key_of(const Walker& walker, Verdict verdict, const Finding& finding) const;
  std::string code_name() const;
  HaltPoint here();
  ProgramHalt program_halt() const;
  Input input_of(const Walker& walker);
  std::string detail_of(const Judgement& judgement, const WalkRecord& record) const;
  std::string name(const TrueFrame& frame) const;
  std::string position(const Blob* blob, uintptr_t pc) const;
  std::vector<std::string> path() const;
  std::string name(const Frame& frame) const;

  Jvm& jvm_;
  const std::vector<Walker*> walkers_;
  const StepLimits limits_;
  CodeCatalog catalog_;
  MethodVersions versions_;
  StackTruth truth_;
  std::vector<TrueFrame> by_versions_;
  Guard::Watch watch_;
  OracleSet oracles_;
  Violations violations_;
  std::array<ThreadSubject, 2> subjects_;  // by mode
  OutsideWalks outside_walks_;
  std::minstd_rand random_;  // the same in each run
  Events events_;
  HaltPoint only_;
  uint64_t arrivals_ = 0, most_steps_ = UINT64_MAX;
  ScenarioId scenario_ = ScenarioId::count;
  std::atomic<bool> armed_{false}, stepping_{false}, given_up_{false};
  std::atomic<uint64_t> steps_now_{0}, found_now_{0}, last_new_{0}, last_known_{0};

  // Of the stepped thread.
  WalkTarget target_;
  Mode mode_ = Mode::same_thread;  // of the walk
  NestedWalk* nested_ = nullptr;   // that is being made
  LibjvmMutants* mutants_ = nullptr;
  std::vector<std::byte> nested_frames_, thread_copies_;  // NestedWalk's
  HaltPoint event_point_;                                 // where the event in force was injected
  uint64_t native_steps_ = 0;
  bool native_before_ = false, call_before_ = false;
  struct Passed {
    const Blob* blob = nullptr;
    Registers at;
    size_t activations = 0;
  };
  std::array<Passed, 48> passed_ = {};  // the instruction of step n at n modulo its size
  ucontext_t given_ = {}, expected_ = {};
  std::vector<std::unique_ptr<FrameBuffer>> buffers_;
  std::vector<Frame> frames_;
  Incidents incidents_;
  int32_t result_ = 0;  // of the last walk
  int waits_ = 0;       // for methods
  Section section_;     // of the instruction that is walked

  StepCounts counts_;
  std::map<std::string, std::array<Tally, kColumns>, std::less<>> sections_;
  std::unordered_map<const Blob*, std::map<uint32_t, Instruction>> instructions_;
  std::map<std::string, StepFinding> findings_;
  std::map<StepEvent, std::array<Tally, kColumns>> event_tallies_;
  std::map<std::string, Plain> plain_;  // of events' findings
  bool injecting_ = true;
  size_t turn_ = 0;
  // Events, by a blob's name and theirs, and by tier and offset in there.
  std::map<std::string, std::map<std::pair<uint8_t, uintptr_t>, uint64_t>> injected_;
};

}  // namespace framestorm::stepping
