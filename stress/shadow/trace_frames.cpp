#include "stress/shadow/trace_frames.h"

#include <utility>

namespace framestorm::stress {
namespace {

// Of the class that instrumented methods call, and of what it calls.
bool is_of_push(std::string_view method) {
  return method.starts_with("framestorm/truth/Shadow.") ||
         method.starts_with("jdk/internal/misc/Unsafe.");
}

}  // namespace

std::vector<TraceFrame> instrumented_frames(std::span<const NamedFrame> frames,
                                            const InstrumentedMethods& methods) {
  std::vector<TraceFrame> found;
  bool above_pushes = false;
  for (size_t i = 0; i < frames.size(); ++i) {
    const NamedFrame& frame = frames[i];
    if (frame.number >= 0) {
      // Native code and the VM are entered in the midst of the innermost one's pushes and pops, too.
      const bool before = i > 0 && methods.is_before_push(frame.number, frame.bci);
      // A frame that has called something else than its push before it is not there yet.
      if (!before || above_pushes) {
        found.push_back({frame.number, i, above_pushes, i == 0});
      }
    }
    above_pushes = is_of_push(frame.name);
  }
  return found;
}

std::string wrong_call(std::span<const NamedFrame> frames, const InstrumentedMethods& methods) {
  for (size_t i = 1; i < frames.size(); ++i) {
    const NamedFrame& caller = frames[i];
    const NamedFrame& callee = frames[i - 1];
    if (caller.number < 0 || !caller.is_adjacent || is_of_push(callee.name)) continue;
    const std::string stands =
        callee.number < 0 ? "" : methods.why_not_called(caller.number, caller.bci, callee.name);
    if (!stands.empty()) {
      return "frame " + std::to_string(i) + " " + std::string(caller.name) + "@" +
             std::to_string(caller.bci) + " has " + stands + " there, the frame above is " +
             std::string(callee.name);
    }
  }
  return {};
}

Compared compare_frames(std::span<const NamedFrame> frames, std::span<const TraceFrame> trace,
                        const Against& against, const InstrumentedMethods& methods,
                        std::string* why) {
  const Compared compared = compare(trace, against);
  const bool is_right = compared.verdict == TruthVerdict::right;
  if (!is_right && !is_wrong(compared.verdict)) return compared;
  std::string wrong = wrong_call(frames, methods);
  if (wrong.empty()) return compared;
  if (!is_right) {
    std::vector<TraceFrame> all;
    for (size_t i = 0; i < frames.size(); ++i) {
      if (frames[i].number >= 0) all.push_back({frames[i].number, i, false, i == 0});
    }
    if (is_wrong(compare(all, against).verdict)) return compared;
  }
  *why = std::move(wrong);
  return {TruthVerdict::wrong_bci, compared.at};
}

std::string difference(const Compared& compared, std::span<const TraceFrame> trace,
                       std::span<const int32_t> shadow, const InstrumentedMethods& methods) {
  const size_t at = compared.at;
  return "instrumented frame " + std::to_string(at) + " is " +
         (at < trace.size() ? methods.name_of(trace[at].method) : "nothing") +
         ", the thread's own is " + (at < shadow.size() ? methods.name_of(shadow[at]) : "nothing");
}

}  // namespace framestorm::stress
