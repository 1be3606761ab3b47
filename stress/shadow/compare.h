// A trace held against the shadow stack of the same moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace framestorm::stress {

enum class TruthVerdict : uint8_t {
  right,
  in_transition,  // right but for the innermost frame, which is being entered or left
  refused,        // an error, where the thread has Java frames
  shorter,        // frames are missing: outer ones, or some in between
  too_deep,       // it goes on where the thread's stack ends
  invented,       // frames that the thread does not have
  wrong_method,
  wrong_bci,
  other_inlining,  // right but for what is inlined in the innermost code: that of another place of it
  count
};
std::string_view name_of(TruthVerdict verdict);
// Whether a trace with it is no true one.
constexpr bool is_wrong(TruthVerdict verdict) { return verdict >= TruthVerdict::shorter; }

// An instrumented frame of a trace.
struct TraceFrame {
  int32_t method = 0;
  size_t frame = 0;            // its place in the trace
  bool may_be_absent = false;  // it is in its push or pop
  // Nothing is above it, and its bci may be an old one: it may be about to push, or have popped.
  bool is_innermost = false;
};

struct Against {
  std::span<const int32_t> shadow;  // methods, innermost first
  uint32_t depth = 0;               // of the shadow stack, which may go on outwards
  // The trace was not cut, and its thread has no frames in the heap: it has to have all.
  bool complete = true;
  // The innermost frame's code may be part of its caller's (inlined): there its push and pop are not
  // at one place, and a trace may have lost it already, or not have it yet.
  bool may_lack_innermost = false;
};

struct Compared {
  TruthVerdict verdict = TruthVerdict::right;
  size_t at = 0;  // the first instrumented frame of the trace, from inside, that differs
  // Of a wrong trace: the thread's frames are all there, in order from the outermost one inwards, and
  // the others stand above them.
  bool has_more_on_top = false;
};

// `trace`: its instrumented frames, innermost first.
Compared compare(std::span<const TraceFrame> trace, const Against& against);

}  // namespace framestorm::stress
