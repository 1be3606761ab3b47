#include "harness/oracles/reference.h"

#include <algorithm>

namespace framestorm {
namespace {

std::string name_of_frame(const Frame& frame, const MethodTable& methods) {
  return method_name(frame, methods) + "@" + std::to_string(frame.bci);
}

bool is_method(const Frame& frame, const MethodTable& methods, std::string_view name) {
  const MethodInfo* info = methods.find(frame.method);
  return info != nullptr && info->name == name;
}

bool is_continuation_enter(const Frame& frame, const MethodTable& methods) {
  return is_method(frame, methods, "jdk/internal/vm/Continuation.enter");
}

// The innermost frame of the scenario's own.
size_t find_innermost_own(const std::vector<Frame>& trace, const MethodTable& methods) {
  const auto own = std::ranges::find_if(trace, [&](const Frame& frame) {
    const MethodInfo* info = methods.find(frame.method);
    return info != nullptr && info->name.starts_with("framestorm/");
  });
  return static_cast<size_t>(own - trace.begin());
}

// An unnamed native method is any.
bool same_method(const Frame& mine, const Frame& theirs, const MethodTable& methods) {
  return mine.unnamed ? methods.is_native(theirs.method) : mine.method == theirs.method;
}

bool same_bci(const Frame& mine, const Frame& theirs) {
  return mine.bci == theirs.bci || mine.bci < 0 || theirs.bci < 0;
}

std::string compare_thawed(const std::vector<Frame>& trace, const std::vector<Frame>& reference,
                           const MethodTable& methods) {
  const auto entered = std::ranges::find_if(
      trace, [&](const Frame& frame) { return is_method(frame, methods, kEntersContinuation); });
  if (entered == trace.end()) return "the trace has no Continuation.enterSpecial";
  const auto thawed = static_cast<size_t>(entered - trace.begin());
  const size_t own = find_innermost_own(trace, methods);
  const size_t their_own = find_innermost_own(reference, methods);
  if (own >= thawed) return "the trace has no frame of the scenario's own";
  for (size_t i = 0; own + i < thawed; ++i) {
    if (their_own + i >= reference.size()) {
      return "the reference ends before the frames on the stack do";
    }
    const Frame& mine = trace[own + i];
    const Frame& theirs = reference[their_own + i];
    // The innermost has moved on since.
    if (!same_method(mine, theirs, methods) || (i > 0 && !same_bci(mine, theirs))) {
      return "frame " + std::to_string(own + i) + " is " + name_of_frame(mine, methods) +
             ", the reference has " + name_of_frame(theirs, methods);
    }
  }
  if (thawed - own >= reference.size() - their_own) return "the trace leaves no frame out";
  return {};
}

}  // namespace

std::string compare_with_reference(const std::vector<Frame>& whole_trace,
                                   const std::vector<Frame>& reference, const MethodTable& methods,
                                   bool outer_frozen) {
  if (outer_frozen) return compare_thawed(whole_trace, reference, methods);
  std::vector<Frame> trace = whole_trace;
  if (is_continuation_enter(reference.back(), methods)) {
    const auto enter = std::ranges::find_if(
        trace, [&](const Frame& frame) { return is_continuation_enter(frame, methods); });
    if (enter != trace.end()) trace.erase(std::next(enter), trace.end());
  }
  const size_t own = find_innermost_own(trace, methods);
  const size_t their_own = find_innermost_own(reference, methods);
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
    // What it had called may have returned, so that it has moved on itself.
    const bool moves = innermost_own || reference.size() - from_base == their_own;
    if (!same_method(mine, theirs, methods) || (!moves && !same_bci(mine, theirs))) {
      if (innermost_own) break;
      return "frame " + std::to_string(from_base - 1) + " from the base is " +
             name_of_frame(mine, methods) + ", the reference has " + name_of_frame(theirs, methods);
    }
  }
  return {};
}

bool is_of_continuation(const std::string& method) {
  return method.starts_with("jdk/internal/vm/Continuation.") ||
         method.starts_with("java/lang/VirtualThread.");
}

}  // namespace framestorm
