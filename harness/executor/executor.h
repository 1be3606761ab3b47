// The one data path: Input -> mutated victim -> walk inside the guard -> oracles -> findings.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/executor/address_space.h"
#include "harness/executor/run_files.h"
#include "harness/executor/write_watching.h"
#include "harness/input/input.h"
#include "harness/jvm/coverage.h"
#include "harness/oracles/java_frame.h"
#include "harness/oracles/oracle_set.h"
#include "harness/victim/migrating_loop.h"
#include "harness/victim/undo_log.h"
#include "harness/victim/victims.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// What became of one input.
struct Outcome {
  enum class Status : uint8_t {
    walked,
    no_victim,  // the scenario has no halted victim now
    no_walker   // the walker is not there, or cannot walk a halted world, or not in this mode
  };
  Status status = Status::no_victim;
  WalkEnd end = WalkEnd::returned;
  int32_t result = 0;             // the walker's, when it returned
  const char* stopped = nullptr;  // WalkRecord::stopped()
  bool unmutated = false;
  // The walk died holding a lock or in HotSpot's error reporting, or freed what was not its own:
  // this process must not walk on.
  bool not_reusable = false;
  // False when the walker keeps results in the walked thread, and this one was taken back.
  bool kept = true;
  // The walker noted a request that the victim answers once it runs on (poll_answer.h).
  bool has_request = false;
  // Where nothing is mutated: the Java frames that the request is of, by kWitness, outermost last.
  // Empty where it is not there, and of a stack that is too deep for it.
  std::vector<JavaFrame> requested;
  // The thread was in the first of them, which had its frame (WalkView::frame_stands()).
  bool requested_stands = false;
  int32_t requested_bci = kNoBci;  // Walker::requested_bci()
  // Of an answer: the thread's poll was armed before it ran on. Where not, it may have passed some.
  bool at_first_poll = true;
  bool put_together = false;      // WalkFacts::put_together
  uint32_t contained_faults = 0;  // by the walker itself
  size_t unresolved = 0;  // mutations that did not apply: unknown code, address off the stack
  std::vector<Finding> findings;

  bool succeeded() const { return end == WalkEnd::returned && result > 0; }
};

enum class Rigour : uint8_t {
  per_walk,    // cheap oracles always, costly ones on one walk in kCostlyShare
  everything,  // every oracle on every walk, see watch_writes() for one; replay and tests
  bare         // no oracle at all; the bench's denominator
};

class Executor {
 public:
  static constexpr uint32_t kCostlyShare = 16;
  // Every so many walks the whole stack copy of the victim is compared, not only its top.
  static constexpr uint32_t kFullVerifyShare = 1024;

  Executor(Jvm& jvm, Victims& victims);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Takes over a walker; the first one of an id stays.
  void add_walker(std::unique_ptr<Walker> walker);
  // The same, but the first one of its id goes. For tests.
  void replace_walker(std::unique_ptr<Walker> walker);
  Walker* walker(WalkerId id) const { return walkable(id).walker.get(); }
  void set_rigour(Rigour rigour) { rigour_ = rigour; }
  // Of whatever rigour but `bare`.
  void watch_writes(WriteWatching::Pace pace) { write_watching_.set_pace(pace); }
  // What oracles have not judged that they should have, and why; of all walks so far.
  std::vector<OracleSet::NotJudged> not_judged() const;
  // Of the JVM under test. After execute() its counters hold what that one walk added, whatever
  // else was walked for it; zeroing them before is the caller's.
  Coverage& coverage() { return coverage_; }

  // One walk, on the loop's stack, world halted. Moves the loop to where the input's
  // mode wants it.
  Outcome execute(const Input& input);

  // Whether a walk so far was one after which this process must not walk on
  // (Outcome::not_reusable), nor let its threads run.
  bool not_reusable() const { return not_reusable_; }

  // What execute() would pass to the walker, for the bench. False when there is no victim or
  // walker. Only register mutations are in it: stack and thread are as they were at the halt.
  struct BareWalk {
    Walker* walker = nullptr;
    Victim* victim = nullptr;
    WalkTarget target;
    ucontext_t context;
    bool null_context = false;
    int32_t depth = 0;
    std::byte* frames = nullptr;
  };
  bool prepare_bare(const Input& input, BareWalk* out);

  // Takes back what abandoned walks left in their victim: JavaThread::_in_asgct and the like. World
  // halted.
  void repair(Victim& victim);

  // The frames of the last walk of a walker, by name and bci; for reports.
  std::vector<NamedFrame> last_trace() const;
  std::vector<NamedFrame> name_frames(const std::vector<Frame>& frames) const;
  std::vector<Frame> last_frames() const;
  // One of them; nothing when there are not so many.
  std::optional<Frame> last_frame(size_t index) const;
  // digest_of_answer() of the same walk.
  uint64_t last_answer() const;

  // Whether an input changes nothing of what a profiler would pass.
  static bool is_unmutated(const Input& input);
  AddressSpace& addresses() { return addresses_; }

 private:
  struct Prepared;
  class FurtherWalker;
  // A walker, and where it writes the frames of a walk and those of further walks.
  struct Walkable {
    std::unique_ptr<Walker> walker;
    std::unique_ptr<FrameBuffer> frames;
    std::unique_ptr<FrameBuffer> further_frames;
  };
  const Walkable& walkable(WalkerId id) const { return walkers_[static_cast<size_t>(id)]; }
  bool has_walker_for(const Input& input) const;
  // Victim, call and context; nothing is walked yet.
  void prepare(const Input& input, Victim* victim, Prepared* prepared);
  void walk(Prepared* prepared);
  // Whether this walk is one that is looked at at any cost.
  bool is_costly() const { return rigour_ == Rigour::everything || walks_ % kCostlyShare == 1; }
  // What a walk has to leave as it is; null where it is not looked at.
  const uint64_t* mask_of_host(const Walker& walker) const;
  Needs offered_by(const Walker& walker) const;
  void measure_exact_depth(Victim* victim, WalkerId id);
  static int32_t depth_of(const Input& input, const Victim& victim);
  bool check_victim(const Prepared& prepared);
  bool keep_state(const Prepared& prepared, bool unmutated);
  std::vector<JavaFrame> frames_of_request(const WalkView& view);

  Jvm& jvm_;
  Victims& victims_;
  AddressSpace addresses_;
  WriteWatching write_watching_;
  Coverage coverage_;
  std::array<Walkable, static_cast<size_t>(WalkerId::count)> walkers_;
  OracleSet oracles_;
  Violations violations_;
  UndoLog undo_;
  Rigour rigour_ = Rigour::per_walk;
  uint32_t walks_ = 0;
  bool not_reusable_ = false;
  std::unique_ptr<Prepared> prepared_;  // the last walk; large, so not made anew each time
  std::unique_ptr<FurtherWalker> further_;
};

}  // namespace framestorm
