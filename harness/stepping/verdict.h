// A trace held against what is true of the stack at one instruction.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "harness/stepping/stack_truth.h"
#include "harness/walkers/walker.h"

namespace framestorm::stepping {

enum class Verdict : uint8_t {
  right,
  refused,    // an error code, or no frame, where there are Java frames
  too_short,  // right as far as it goes, and ends early
  wrong,      // a frame that is not there, or one left out
  failed,     // no answer: a fault, a hang
  unjudged,   // the truth is not known
  count
};
std::string_view name_of(Verdict verdict);

// Right in all but where a frame is, of walkers that tell that.
inline constexpr std::string_view kFrameElsewhere = "frame-elsewhere";

// Where a thread has noted its last Java frame (JavaFrameAnchor).
struct NotedPlace {
  uintptr_t pc = 0, sp = 0;
};

struct Judgement {
  Verdict verdict = Verdict::unjudged;
  // What is wrong with it, the same for all traces that are wrong in this way; static storage.
  std::string_view clause;
  size_t at = 0;  // the first frame that is not right, or where it ends
  // What should be there; null for the end of the stack.
  const TrueFrame* expected = nullptr;
};

// `frames`: the Java frames of a trace, innermost first. `cut`: it filled its depth, and may end
// anywhere. `methods` says which are native. `noted`: where the innermost frame may stand, too.
// `stopped`: the walker says that it could not go on. Does not allocate.
Judgement judge(std::span<const Frame> frames, std::span<const TrueFrame> truth,
                const WalkerTraits& walker, const MethodTable& methods, bool cut,
                const NotedPlace& noted = {}, bool stopped = false);

}  // namespace framestorm::stepping
