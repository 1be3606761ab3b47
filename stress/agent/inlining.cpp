#include "stress/agent/inlining.h"

#include <algorithm>
#include <set>
#include <utility>

namespace framestorm::stress {

bool has_other_inlining(std::span<const DebugInfo::JavaFrame> frames, const DebugInfo& code,
                        const TraceOf& trace_of, const Against& against) {
  for (size_t count = 1; count <= frames.size(); ++count) {
    if (frames[count - 1].method != code.method()) continue;
    const auto inlined = frames.first(count);
    const auto is_there = [&](auto place) { return std::ranges::equal(inlined, place); };
    if (std::ranges::none_of(code.places(), is_there)) continue;
    // Many places have the same.
    std::set<std::vector<std::pair<int32_t, bool>>> tried;
    for (const auto place : code.places()) {
      std::vector<DebugInfo::JavaFrame> other(place.begin(), place.end());
      other.insert(other.end(), frames.begin() + static_cast<ptrdiff_t>(count), frames.end());
      const std::vector<TraceFrame> trace = trace_of(other);
      std::vector<std::pair<int32_t, bool>> key;
      for (const TraceFrame& frame : trace) key.emplace_back(frame.method, frame.may_be_absent);
      if (tried.insert(std::move(key)).second && !is_wrong(compare(trace, against).verdict)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace framestorm::stress
