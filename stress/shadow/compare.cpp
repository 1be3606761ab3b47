#include "stress/shadow/compare.h"

#include <algorithm>
#include <optional>

namespace framestorm::stress {
namespace {

constexpr std::string_view kNames[] = {"right",        "in-transition", "refused",
                                       "short",        "too-deep",      "invented",
                                       "wrong-method", "wrong-bci",     "other-inlining"};

// How much of `shadow` begins with all of `trace`, in order; frames that may be absent are there or not.
// Nothing when it does not; `differs` is then how far it got at most.
// Of a stack whose outer part is not known (`goes_on`) that may be anything.
std::optional<size_t> matched(std::span<const TraceFrame> trace, std::span<const int32_t> shadow,
                              bool goes_on, size_t* differs, size_t from = 0,
                              size_t in_shadow = 0) {
  for (size_t i = from; i < trace.size(); ++i) {
    if (goes_on && in_shadow == shadow.size()) return in_shadow;
    const bool is_there = in_shadow < shadow.size() && trace[i].method == shadow[in_shadow];
    if (trace[i].may_be_absent) {
      // Of a method that calls itself either may be the one that has yet to push.
      if (is_there) {
        const auto with = matched(trace, shadow, goes_on, differs, i + 1, in_shadow + 1);
        if (with) return with;
      }
      return matched(trace, shadow, goes_on, differs, i + 1, in_shadow);
    }
    if (!is_there) {
      *differs = std::max(*differs, i);
      return std::nullopt;
    }
    ++in_shadow;
  }
  return in_shadow;
}

// Whether `shorter` has nothing that `longer` has not, in order.
template <typename Short, typename Long, typename Same>
bool is_part_of(const Short& shorter, const Long& longer, Same same) {
  auto at = longer.begin();
  for (const auto& one : shorter) {
    while (at != longer.end() && !same(one, *at)) ++at;
    if (at == longer.end()) return false;
    ++at;
  }
  return true;
}

bool has_more_on_top(std::span<const TraceFrame> trace, const Against& against) {
  if (!against.complete || trace.size() <= against.depth) return false;
  const auto outer = trace.last(against.depth).first(against.shadow.size());
  return std::ranges::equal(outer, against.shadow, {}, &TraceFrame::method);
}

}  // namespace

std::string_view name_of(TruthVerdict verdict) { return kNames[static_cast<size_t>(verdict)]; }

Compared compare(std::span<const TraceFrame> trace, const Against& against) {
  const auto shadow = against.shadow;
  const bool goes_on = shadow.size() < against.depth;
  const auto whole = [&](size_t found, size_t skipped) {
    return !against.complete || found + skipped == (goes_on ? shadow.size() : against.depth);
  };
  size_t differs = 0;
  const auto found = matched(trace, shadow, goes_on, &differs);
  if (found && whole(*found, 0)) return {};
  size_t ignored = 0;
  // Its push has yet to come, or its pop has been.
  bool is_part_without = false;
  if (!trace.empty() && trace.front().is_innermost) {
    const auto without = matched(trace.subspan(1), shadow, goes_on, &ignored);
    if (without && whole(*without, 0)) return {TruthVerdict::in_transition, 0};
    is_part_without = without.value_or(0) > 0;
  }
  if (against.may_lack_innermost && !shadow.empty()) {
    const auto without = matched(trace, shadow.subspan(1), goes_on, &ignored);
    if (without && whole(*without, 1)) return {TruthVerdict::in_transition, 0};
  }
  if (found || is_part_without) return {TruthVerdict::shorter, trace.size()};
  const auto same = [](const TraceFrame& frame, int32_t method) { return frame.method == method; };
  const auto same_as = [](int32_t method, const TraceFrame& frame) {
    return frame.method == method;
  };
  TruthVerdict verdict = TruthVerdict::wrong_method;
  if (is_part_of(trace, shadow, same)) {
    verdict = TruthVerdict::shorter;
  } else if (!goes_on && is_part_of(shadow, trace, same_as)) {
    const auto inner = trace.first(std::min(trace.size(), shadow.size()));
    verdict =
        std::ranges::equal(inner, shadow, same) ? TruthVerdict::too_deep : TruthVerdict::invented;
  }
  return {verdict, differs, has_more_on_top(trace, against)};
}

}  // namespace framestorm::stress
