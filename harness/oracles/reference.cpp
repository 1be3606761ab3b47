#include "harness/oracles/reference.h"

#include <algorithm>

namespace framestorm {
namespace {

std::string name_of_frame(const Frame& frame, const MethodTable& methods) {
  const MethodInfo* info = methods.find(frame.method);
  return (info == nullptr ? std::string("?") : info->name) + "@" + std::to_string(frame.bci);
}

bool is_continuation_enter(const Frame& frame, const MethodTable& methods) {
  const MethodInfo* info = methods.find(frame.method);
  return info != nullptr && info->name == "jdk/internal/vm/Continuation.enter";
}

}  // namespace

std::string compare_with_reference(const std::vector<Frame>& whole_trace,
                                   const std::vector<Frame>& reference,
                                   const MethodTable& methods) {
  std::vector<Frame> trace = whole_trace;
  if (is_continuation_enter(reference.back(), methods)) {
    const auto enter = std::ranges::find_if(
        trace, [&](const Frame& frame) { return is_continuation_enter(frame, methods); });
    if (enter != trace.end()) trace.erase(std::next(enter), trace.end());
  }
  size_t own = 0;
  while (own < trace.size()) {
    const MethodInfo* info = methods.find(trace[own].method);
    if (info != nullptr && info->name.starts_with("framestorm/")) break;
    ++own;
  }
  for (size_t from_base = 1; from_base <= trace.size() - own; ++from_base) {
    const Frame& mine = trace[trace.size() - from_base];
    const bool innermost_own = trace.size() - from_base == own;
    if (from_base > reference.size()) {
      // The scenario's innermost method may have returned in between.
      if (innermost_own) break;
      return "the reference has only " + std::to_string(reference.size()) +
             " frames, the trace has " + std::to_string(trace.size());
    }
    const Frame& theirs = reference[reference.size() - from_base];
    if (mine.method != theirs.method ||
        (!innermost_own && mine.bci != theirs.bci && mine.bci >= 0 && theirs.bci >= 0)) {
      if (innermost_own) break;
      return "frame " + std::to_string(from_base - 1) + " from the base is " +
             name_of_frame(mine, methods) + ", the reference has " + name_of_frame(theirs, methods);
    }
  }
  return {};
}

}  // namespace framestorm
