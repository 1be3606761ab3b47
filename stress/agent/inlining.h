// What stands inlined where, in a wrong trace.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "harness/jvm/code_map.h"
#include "stress/shadow/compare.h"

namespace framestorm::stress {

// The instrumented frames of a trace.
using TraceOf = std::function<std::vector<TraceFrame>(std::span<const DebugInfo::JavaFrame>)>;

// Whether a wrong trace is right with what is inlined at another place of `code`, in which it begins.
// Between calls and polls there is no debug information: HotSpot's walkers, and those that are made
// like them, take that of the next place in the code (nmethod::pc_desc_near), even where something
// else is inlined. So it is in a leaf call, which has no anchor and no place of its own.
bool has_other_inlining(std::span<const DebugInfo::JavaFrame> frames, const DebugInfo& code,
                        const TraceOf& trace_of, const Against& against);

}  // namespace framestorm::stress
