// What a profiler has stored of unmutated walks, held to the frames that their scenarios have.
// Control thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/executor/session.h"
#include "harness/walkers/profiler.h"

namespace framestorm {

struct RecordedVerdict {
  static constexpr std::string_view kRight = "right";
  static constexpr std::string_view kShort = "short";  // it ends early
  static constexpr std::string_view kWrong = "wrong";
  static constexpr std::string_view kMissing = "missing";

  std::string_view verdict;
  std::string why;                   // empty for one that is right
  std::string_view difference = "";  // of a wrong one, as difference() says it
};

// Releases the world, and lets the scenario's victim run on for a moment: JFR's samples are stored by
// their threads, which may be suspended between halts.
void let_store(Session& session, ScenarioId scenario);

// The newest of `traces` that is of this victim's thread. A virtual thread is found by its own id, not
// its carrier's.
RecordedVerdict judge_recorded(std::span<const RecordedTrace> traces, const Victim& victim,
                               const WalkerTraits& walker);

// That a stored trace is wrong, of the unmutated `input` of its walk.
Finding finding_of(const RecordedVerdict& wrong, const Input& input);

}  // namespace framestorm
