// What a right walk of a scenario's victims shows (harness/input/scenario_table.h), held against
// traces.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/input/input.h"
#include "harness/input/walker_table.h"

namespace framestorm {

// Stands in a trace for a native method that its walker does not name: for whichever one is right there.
inline constexpr std::string_view kUnnamedNative = "?.native";

// Whether `frames` ("pkg/Class.method", innermost first) is what `pattern` says, see
// ScenarioInfo::trace. With `truncated` (the walk filled its depth) it may end early. On false,
// *why (unless null) says which frame is wrong and what was expected. Any thread; allocates.
bool matches_pattern(std::span<const std::string> frames, std::string_view pattern, bool truncated,
                     std::string* why);

// Whether a walk of a victim of `info` by `walker` is right: by asgct_trace only for those that end
// where they distrust a frame; by thawed_trace instead of trace for those that read nothing but the
// stack, and by its beginning for those that stop where a continuation begins. A victim that is still
// in the call that registers it, or already in the one that ends it, may have those frames on top.
bool matches(std::span<const std::string> frames, const ScenarioInfo& info,
             const WalkerTraits& walker, std::string* why, bool truncated = false);

// How a trace that is not right differs from ScenarioInfo::trace, and whether at its top or further out:
// "lacks its innermost frames". The same words for all scenarios. Any thread; allocates.
std::string_view difference(std::span<const std::string> frames, const ScenarioInfo& info);

}  // namespace framestorm
