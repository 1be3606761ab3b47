// An oracle judges one walk beyond 'the process lives'. One file per oracle, which registers it
// (README.md says how).
//
//   oracle         what it demands of a walk
//   ────────────── ─────────────────────────────────────────────────────────────────
//   fault          it came back, in time
//   sanitizer      no sanitizer reported anything
//   memory         it wrote only its frames
//   writes         it wrote to nothing that the VM has allocated, nor to the code cache
//   signal_safety  it called nothing that is not async-signal-safe
//   contract       the trace is legal
//   places         its frames are where their stack and their code can have them
//   collection     there is none while a collection has stopped the world
//   exiting        a thread that is exiting is refused as such, and no other one is
//   context        a thread outside Java is walked as its anchor says, whatever its context says
//   kinds          kind, state and thread of the trace agree with the victim
//   calls          sequences of iterator calls do what a plain model says, within the walk
//   prefix         half the depth gives the first half of the frames
//   determinism    the same input gives the same trace, whatever else was on the walker's stack
//   options        with C frames contains without; unknown bits change nothing
//   truth          the frames are the scenario's
//   native_frames  frames of C and C++ on top are those of the C++ runtime's unwinder
//   request        the frame that JFR notes is one of the thread's
//   agreement      other walkers give the same Java frames
//
// Never called inside a walk: an oracle may allocate. What is called in signal handlers says so.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/oracles/finding.h"
#include "harness/oracles/further_walks.h"
#include "harness/oracles/walk_view.h"

namespace framestorm {

// What an oracle cannot do without. A driver says what it offers, for all walks and for each.
enum class Need : uint8_t {
  halted_world,    // the victim still stands where it was walked, and nobody else runs
  further_walks,   // on most walks: the oracle is costly, and looks at a share of them
  ground_truth,    // the victim is a scenario's, whose frames are known
  incidents,       // WalkRecord::incidents and contexts, which a trace alone does not have
  guarded_frames,  // WalkRecord::buffer
  unsafe_calls,    // the interposer is in place
  trace,           // the walker gives one; a profiler keeps it
  standing_code,   // the code cache is as it was at the walk, and the code map knows it
  count
};
// What is missing where a driver does not offer it: "a halted world".
std::string_view name_of(Need need);

class Needs {
 public:
  constexpr Needs() = default;
  constexpr Needs(std::initializer_list<Need> needs) {
    for (const Need need : needs) bits_ |= bit(need);
  }
  constexpr bool has(Need need) const { return (bits_ & bit(need)) != 0; }
  constexpr bool within(Needs offered) const { return (bits_ & ~offered.bits_) == 0; }
  constexpr Needs without(Needs others) const {
    Needs rest;
    rest.bits_ = bits_ & ~others.bits_;
    return rest;
  }

 private:
  static constexpr uint32_t bit(Need need) { return 1U << static_cast<unsigned>(need); }
  uint32_t bits_ = 0;
};

// What oracles report to.
class Violations {
 public:
  void add(FindingKind kind, std::string_view clause, std::string detail,
           const FaultRecord& fault = {});
  // A clause of the contract is broken.
  void broken(std::string_view clause, std::string detail) {
    add(FindingKind::contract, clause, std::move(detail));
  }
  // Says of the findings from the `first`-th on which oracle they are of.
  void attribute(size_t first, std::string_view oracle) {
    for (size_t i = first; i < findings_.size(); ++i) findings_[i].oracle = oracle;
  }
  void clear() { findings_.clear(); }
  bool empty() const { return findings_.empty(); }
  const std::vector<Finding>& findings() const { return findings_; }
  std::vector<Finding> take() { return std::exchange(findings_, {}); }

 private:
  std::vector<Finding> findings_;
};

class Oracle {
 public:
  virtual ~Oracle() = default;
  virtual void check(const WalkView& view, Further& further, Violations* out) = 0;
};

// What everybody is told of an oracle.
struct OracleDeclaration {
  std::string_view name;
  int order = 0;  // oracles look at a walk, and report, in ascending order
  Needs needs;
  // Looks at one walk by itself, and so also at those that an oracle asked for. What they did wrong
  // is a finding of an input that says what that walk was.
  bool judges_further = false;
  // For one that needs incidents: false when it would certainly find nothing, so that they need not
  // be kept. Null: it has to see each. Async-signal-safe; neither methods nor the code map may be
  // looked at.
  bool (*suspects)(const WalkView& view) = nullptr;
  // The further walks that check() may ask for. Null: none. Context as above.
  void (*ask)(const WalkView& view, FurtherWalks* out) = nullptr;
};

// A static object of this kind registers an oracle.
class OracleRegistration {
 public:
  using Make = std::unique_ptr<Oracle> (*)();
  OracleRegistration(const OracleDeclaration& declared, Make maker) noexcept;

  const OracleDeclaration declaration;
  const Make make;

  // All of them in their order.
  static std::vector<const OracleRegistration*> all();

 private:
  const OracleRegistration* const next_;
};

template <typename OracleType>
class RegisteredOracle : public OracleRegistration {
 public:
  explicit RegisteredOracle(const OracleDeclaration& declaration) noexcept
      : OracleRegistration(declaration, []() -> std::unique_ptr<Oracle> {
          return std::make_unique<OracleType>();
        }) {}
};

}  // namespace framestorm
