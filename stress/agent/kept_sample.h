// A sample as it is kept (README.md, "samples"): everything that was there, with addresses in
// words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "harness/jvm/modules.h"
#include "harness/oracles/oracle.h"
#include "stress/agent/options.h"
#include "stress/agent/sample.h"

namespace framestorm::stress {

// How a walk ended, in words.
const char* end_name(WalkEnd end);

nlohmann::json describe_trace(const WalkView& view, const Sample& sample, const Modules& modules);
// `stack`: what was copied, from sp up. Not async-signal-safe; the code map is as of now.
nlohmann::json describe_sample(const Sample& sample, std::span<const std::byte> stack,
                               const nlohmann::json& trace, const Jvm& jvm, const Modules& modules,
                               SamplingMode mode);

}  // namespace framestorm::stress
