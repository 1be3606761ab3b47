#include "harness/stepping/verdict.h"

#include <algorithm>
#include <array>

namespace framestorm::stepping {
namespace {

using Sort = TrueFrame::Sort;

class Match {
 public:
  Match(std::span<const Frame> frames, std::span<const TrueFrame> truth, const WalkerTraits& walker,
        const MethodTable& methods, bool cut)
      : frames_(frames), truth_(truth), walker_(walker), methods_(methods), cut_(cut) {}

  // Whether the trace from frame `f` on is the truth from `t` on. Notes how far it was.
  bool from(size_t f, size_t t) {
    for (; t < truth_.size(); ++t) {
      const TrueFrame& wanted = truth_[t];
      switch (wanted.sort) {
        case Sort::frozen:
          if (f == frames_.size() && !walker_.sees_frozen_frames) return true;
          continue;
        case Sort::carrier:
          return f == frames_.size() || !walker_.ends_at_a_continuation;
        case Sort::optional:
          if (f < frames_.size() && is(frames_[f], wanted, f) && from(f + 1, t + 1)) return true;
          continue;
        case Sort::inlined:
          if (inlined(f, t)) return true;
          return false;
        case Sort::frame:
          if (f == frames_.size() && cut_) return true;
          if (f == frames_.size() || !is(frames_[f], wanted, f)) {
            note(f, t);
            return false;
          }
          ++f;
      }
    }
    if (f == frames_.size()) return true;
    note(f, t);
    return false;
  }

  size_t frame() const { return frame_; }
  size_t place() const { return place_; }

 private:
  bool is(const Frame& frame, const TrueFrame& wanted, size_t f) const {
    const bool has_no_id = frame.method == nullptr && wanted.replaced;
    if (frame.unnamed ? !methods_.is_native(wanted.method)
                      : frame.method != wanted.method && !has_no_id) {
      return false;
    }
    if (wanted.bci == kAnyBci || frame.bci == wanted.bci) return true;
    if (f == 0 && (!wanted.exact || walker_.guesses_innermost_bci)) return true;
    return frame.bci == walker_.native_bci.value_or(kNoBci) && methods_.is_native(wanted.method);
  }

  // Some frames that are inlined in the code, and then the code's own.
  bool inlined(size_t f, size_t t) {
    std::array<DebugInfo::JavaFrame, 64> chain;
    for (size_t end = f; end <= frames_.size() && end - f < chain.size(); ++end) {
      if (end == frames_.size()) break;
      chain[end - f] = {frames_[end].method, frames_[end].bci};
      const bool whole =
          frames_[end].method == truth_[t + 1].method &&
          (end == f || truth_[t].code->has_inlined(std::span(chain).first(end - f + 1)));
      if (whole && from(end, t + 1)) return true;
    }
    return from(f, t + 1);
  }

  void note(size_t f, size_t t) {
    if (noted_ && f <= frame_) return;
    noted_ = true;
    frame_ = f;
    place_ = t;
  }

  const std::span<const Frame> frames_;
  const std::span<const TrueFrame> truth_;
  const WalkerTraits& walker_;
  const MethodTable& methods_;
  const bool cut_;
  bool noted_ = false;
  size_t frame_ = 0, place_ = 0;
};

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"right", "refused", "short",
                                         "wrong", "failed",  "unjudged"};
  return name_in(kNames, verdict);
}

Judgement judge(std::span<const Frame> frames, std::span<const TrueFrame> truth,
                const WalkerTraits& walker, const MethodTable& methods, bool cut) {
  if (frames.empty()) {
    const auto first = std::ranges::find(truth, Sort::frame, &TrueFrame::sort);
    if (first == truth.end()) return {.verdict = Verdict::right};
    return {.verdict = Verdict::refused, .clause = "no-frames", .expected = &*first};
  }
  Match match(frames, truth, walker, methods, cut);
  if (match.from(0, 0)) return {.verdict = Verdict::right};
  Judgement result = {.verdict = Verdict::wrong, .at = match.frame()};
  if (match.place() < truth.size()) result.expected = &truth[match.place()];
  if (match.frame() == frames.size()) {
    result.verdict = Verdict::too_short;
    result.clause = "trace-ends-early";
    return result;
  }
  const Frame& given = frames[match.frame()];
  if (result.expected == nullptr) {
    result.clause = "frame-below-the-last";
  } else if (given.method == result.expected->method) {
    result.clause = "wrong-bci";
  } else {
    const auto deeper = truth.subspan(match.place() + 1);
    const auto is_deeper = [&](const TrueFrame& frame) {
      return frame.sort == Sort::frame && frame.method == given.method;
    };
    result.clause = std::ranges::any_of(deeper, is_deeper)
                        ? (match.frame() == 0 ? "innermost-frame-left-out" : "caller-left-out")
                        : "frame-not-there";
  }
  return result;
}

}  // namespace framestorm::stepping
