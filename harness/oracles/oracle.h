// An oracle judges one walk beyond 'the process lives'. One file per oracle; DESIGN numbers in
// brackets.
//
//   fault          [1] it came back, in time
//   sanitizer      [1] and no sanitizer said anything
//   memory         [2] it wrote only its frames
//   signal_safety  [3] it called nothing unsafe
//   contract       [4] the trace is legal
//   kinds          [4] kind, state and thread of the trace
//   calls          [4] what the adapter compared within the walk: sequences of iterator calls
//   prefix         [4] depth k starts depth n
//   determinism    [5] the same again
//   options        [4] with C frames contains without; unknown bits change nothing
//   truth          [6] the scenario's frames
//   agreement      [6] other walkers' frames
//   liveness       [7] over a whole run: walks did succeed
//
// Called on the loop's stack with the world halted, after the walk and before its mutations are
// undone. Never inside the walk: an oracle may allocate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/executor/finding.h"
#include "harness/executor/frame_buffer.h"
#include "harness/input/input.h"
#include "harness/jvm/jvm.h"
#include "harness/victim/undo_log.h"
#include "harness/victim/victims.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// Everything there is to know about one walk.
struct WalkView {
  // Its scenario is ScenarioId::count for a walk in a program that is none of them.
  const Input* input = nullptr;
  Victim* victim = nullptr;
  Walker* walker = nullptr;
  const Jvm* jvm = nullptr;
  MethodTable* methods = nullptr;
  bool unmutated = false;     // no mutation and no unusual call argument
  bool mutated = false;       // some mutation is in effect
  uint32_t thread_state = 0;  // as the walk saw it
  // Of the thread's frame anchor as the walk saw it, or, where a stub sets none, the return address
  // that its call left; 0 when there is none.
  uintptr_t last_java_pc = 0;
  int32_t depth = 0;
  const FrameBuffer* buffer = nullptr;
  std::byte* frames = nullptr;
  WalkEnd end = WalkEnd::returned;
  int32_t result = 0;             // the walker's count or error code, when it returned
  const char* stopped = nullptr;  // WalkFacts::stopped, which later walks overwrite
  const FaultRecord* fault = nullptr;
  const UnsafeCalls* unsafe = nullptr;
  const SanitizerReports* reports = nullptr;
  const ucontext_t* context = nullptr;           // what the walker was given; null when it got null
  const ucontext_t* expected_context = nullptr;  // the same before the walk
  int errno_before = 0;
  int errno_after = 0;
  const UndoLog* undo = nullptr;
  bool signal_mask_checked = false;
  bool signal_mask_changed = false;

  size_t frame_count() const {
    return end == WalkEnd::returned && result > 0 ? static_cast<size_t>(result) : 0;
  }

  // Whether the walk may have read frames of its own and of its signal handler, which stand right
  // below the victim's sp in same-thread mode and are not the same twice. Nothing that is unmutated
  // leads there: sp, fp, the anchor and the frames' links point up. A mutated word may, at once or
  // through a stale word of the victim's stack that a walk gone astray takes for a link; which
  // words a walk reads is not known here. See Rewalk::Place::aside.
  bool may_read_itself() const { return mutated && input->mode == Mode::same_thread; }
};

// What oracles report to. Keeps the storage of its findings between walks.
class Violations {
 public:
  void add(FindingKind kind, std::string_view clause, std::string detail);
  void add(FindingKind kind, std::string_view clause, std::string detail, const FaultRecord& fault);
  void clear() { findings_.clear(); }
  bool empty() const { return findings_.empty(); }
  std::vector<Finding>& findings() { return findings_; }

 private:
  std::vector<Finding> findings_;
};

// What a walk answered.
struct Answer {
  int32_t result = 0;
  std::vector<std::byte> frames;  // as many as the result says
};

// Walks the same mutated victim once more; for oracles that compare walks. What such a walk does
// wrong by itself (see Oracle::judges_rewalks) is reported without the oracle's doing, as a finding
// of an input that says what that walk was.
class Rewalk {
 public:
  enum class Place : uint8_t {
    same,  // where the walk was made
    // On the same thread, but not on its stack: nothing runs below the victim's sp, so that what
    // is read there is the same in all walks made aside. If these differ too, it is the walker.
    aside
  };
  virtual ~Rewalk() = default;
  // False when the walk did not return; then no further one is made.
  virtual bool walk(int32_t depth, Place place, Answer* answer) = 0;
  // The same with another walker or other arguments of the call: `variant` has the walk's scenario,
  // mode and mutations. Also false when there is no such walker.
  virtual bool walk_as(const Input& variant, Place place, Answer* answer) = 0;
  // Null when there is none.
  virtual Walker* walker(WalkerId id) const = 0;
};

class Oracle {
 public:
  virtual ~Oracle() = default;
  virtual std::string_view name() const = 0;
  // Costly oracles walk again; the executor runs them on a share of the walks.
  virtual bool costly() const { return false; }
  // Looks at one walk by itself, and so also at those that a costly oracle makes.
  virtual bool judges_rewalks() const { return false; }
  virtual void check(const WalkView& view, Rewalk& rewalk, Violations* out) = 0;
};

std::unique_ptr<Oracle> make_fault_oracle();
std::unique_ptr<Oracle> make_sanitizer_oracle();
std::unique_ptr<Oracle> make_memory_oracle();
std::unique_ptr<Oracle> make_signal_safety_oracle();
std::unique_ptr<Oracle> make_contract_oracle();
std::unique_ptr<Oracle> make_kinds_oracle();
std::unique_ptr<Oracle> make_calls_oracle();
std::unique_ptr<Oracle> make_prefix_oracle();
std::unique_ptr<Oracle> make_determinism_oracle();
std::unique_ptr<Oracle> make_options_oracle();
std::unique_ptr<Oracle> make_truth_oracle();
std::unique_ptr<Oracle> make_agreement_oracle();

// All of the above, in that order.
std::vector<std::unique_ptr<Oracle>> make_oracles();

}  // namespace framestorm
