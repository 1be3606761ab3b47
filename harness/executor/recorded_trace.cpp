#include "harness/executor/recorded_trace.h"

#include <time.h>

#include <algorithm>
#include <ranges>

#include "harness/victim/scenario.h"

namespace framestorm {

void let_store(Session& session, ScenarioId scenario) {
  constexpr timespec kMoment = {0, 20'000'000};
  session.release_world();
  session.victims().resume(scenario);
  nanosleep(&kMoment, nullptr);
  session.victims().pause(scenario);
}

RecordedVerdict judge_recorded(std::span<const RecordedTrace> traces, const Victim& victim,
                               const WalkerTraits& walker) {
  const auto is_own = [&](const RecordedTrace& trace) {
    return trace.tid == victim.tid || (trace.java_id != 0 && trace.java_id == victim.java_id);
  };
  const auto newest_first = std::views::reverse(traces);
  const auto newest = std::ranges::find_if(newest_first, is_own);
  if (newest == newest_first.end()) {
    return {RecordedVerdict::kMissing, "it has stored no trace of this walk"};
  }
  const ScenarioInfo& info = scenario_info(victim.scenario);
  std::string why;
  if (matches(newest->methods, info, walker, &why)) return {RecordedVerdict::kRight, ""};
  const bool ends_early = matches(newest->methods, info, walker, nullptr, /*truncated=*/true);
  if (ends_early) return {RecordedVerdict::kShort, why};
  return {RecordedVerdict::kWrong, why, difference(newest->methods, info)};
}

Finding finding_of(const RecordedVerdict& wrong, const Input& input) {
  return {.kind = FindingKind::contract,
          .clause = "wrong-frames",
          .detail = "what is stored of " + std::string(name_of(input.scenario)) + " " +
                    std::string(wrong.difference) + ": " + wrong.why,
          .fault = {},
          .input = input,
          .oracle = "truth"};
}

}  // namespace framestorm
