#include "fuzz/feedback.h"

#include <algorithm>
#include <bit>

namespace framestorm {
namespace {

// libFuzzer finds them by the section's name.
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t extra_counters[Feedback::kCounters];

size_t result_class(const Outcome& outcome, size_t classes) {
  const size_t not_returned = classes - 1;
  const size_t first_count = classes / 2;
  if (outcome.end != WalkEnd::returned) return not_returned;
  if (outcome.result <= 0) {
    return std::min(static_cast<size_t>(-static_cast<int64_t>(outcome.result)), first_count - 1);
  }
  const auto log2 = std::bit_width(static_cast<uint32_t>(outcome.result)) - 1U;
  return std::min(first_count + log2, not_returned - 1);
}

// A native method's frame: as the walker says, or by AsyncGetCallTrace's bci for it.
bool is_native(const std::optional<Frame>& frame) {
  return frame && (frame->type == FrameType::native || frame->bci < kNoBci);
}

}  // namespace

Feedback::Ending Feedback::ending_of(const Input& input, const Outcome& outcome,
                                     const std::optional<Frame>& first,
                                     const std::optional<Frame>& second) {
  if (outcome.status != Outcome::Status::walked) return kNothing;
  const size_t row =
      static_cast<size_t>(input.scenario) * kResults + result_class(outcome, kResults);
  const unsigned kinds = (is_native(first) ? 1U : 0U) | (is_native(second) ? 2U : 0U);
  return static_cast<Ending>(row * kFrameKinds + kinds);
}

bool Feedback::note(Ending ending) {
  if (ending == kNothing) return false;
  if (!seen_[ending]) {
    seen_.set(ending);
    ++ends_[ending / (kResults * kFrameKinds)];
  }
  return !told_[ending];
}

void Feedback::tell(Ending ending) {
  if (ending == kNothing) return;
  // The lowest value of each range (CounterToFeature in libFuzzer's FuzzerTracePC.h).
  constexpr uint8_t kRange[kEndingsPerCounter] = {1, 2, 3, 4, 8, 16, 32, 128};
  extra_counters[ending / kEndingsPerCounter] = kRange[ending % kEndingsPerCounter];
  told_.set(ending);
}

std::span<uint8_t, Feedback::kCounters> Feedback::counters() { return extra_counters; }

}  // namespace framestorm
