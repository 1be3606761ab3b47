#include "harness/stepping/verdict.h"

#include <algorithm>
#include <array>

namespace framestorm::stepping {
namespace {

using Sort = TrueFrame::Sort;

class Match {
 public:
  Match(std::span<const Frame> frames, std::span<const TrueFrame> truth, const WalkerTraits& walker,
        const MethodTable& methods, bool cut, const NotedPlace& noted, bool stopped)
      : frames_(frames),
        truth_(truth),
        walker_(walker),
        methods_(methods),
        cut_(cut),
        noted_(noted),
        stopped_(stopped) {
    truth_of_.fill(UINT16_MAX);
  }

  // Whether the trace from frame `f` on is the truth from `t` on. Notes how far it was.
  bool from(size_t f, size_t t) {
    for (; t < truth_.size(); ++t) {
      const TrueFrame& wanted = truth_[t];
      switch (wanted.sort) {
        case Sort::frozen:
          if (f == frames_.size() && may_end_at_frozen()) return true;
          continue;
        case Sort::carrier:
          return f == frames_.size() || !walker_.ends_at_a_continuation;
        case Sort::optional:
          stands_for(f, t);
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
          stands_for(f, t);
          ++f;
      }
    }
    if (f == frames_.size()) return true;
    note(f, t);
    return false;
  }

  size_t frame() const { return frame_; }
  size_t place() const { return place_; }
  // Of a trace that is the truth: the frame that it is there, beyond the last where it is none.
  size_t truth_of(size_t f) const { return truth_of_[f]; }

  // Of a trace that is the truth: the first frame that is somewhere else; as many as there are when none is.
  size_t first_elsewhere() const {
    // What others mean by a frame's sp is theirs.
    if (frames_.empty() || !walker_.is_added()) return frames_.size();
    // Three registers do not tell a method that is entered from its caller, where it calls itself.
    if (truth_.front().sort == Sort::optional && walker_.needs_registers_only) {
      return frames_.size();
    }
    const Frame& innermost = frames_.front();
    const bool is_noted = noted_.pc != 0 && noted_.pc == innermost.pc &&
                          (innermost.sp == 0 || innermost.sp == noted_.sp);
    // Whoever does not see a method that is being entered takes its caller for what runs.
    const bool is_entering =
        truth_.front().sort == Sort::optional && truth_.front().pc == innermost.pc;
    const size_t count = std::min(frames_.size(), kMostPlaced);
    for (size_t f = 0; f < count; ++f) {
      // What is inlined stands where its code does.
      const bool is_there = frames_[f].pc == innermost.pc && frames_[f].sp == innermost.sp;
      if ((is_noted || is_entering) && is_there) continue;
      if (truth_of(f) < truth_.size() && !truth_[truth_of(f)].stands_at(frames_[f])) return f;
    }
    return frames_.size();
  }

 private:
  // Whoever says that frames are left out there goes on below them, and is not stopped.
  bool may_end_at_frozen() const {
    return !walker_.sees_frozen_frames && !(walker_.says_frozen && stopped_);
  }

  bool is(const Frame& frame, const TrueFrame& wanted, size_t f) const {
    const bool has_no_id = frame.method == nullptr && wanted.may_have_no_id;
    if (frame.unnamed ? !methods_.is_native(wanted.method)
                      : frame.method != wanted.method && !has_no_id) {
      return false;
    }
    if (wanted.bci == kAnyBci || frame.bci == wanted.bci) return true;
    if (f == 0 && !is_noted_call(wanted) && (!wanted.exact || walker_.guesses_innermost_bci)) {
      return true;
    }
    return frame.bci == walker_.native_bci.value_or(kNoBci) && methods_.is_native(wanted.method);
  }

  // Of compiled code, by the return address, which the thread has noted: nobody has to guess there
  // (is_decipherable_compiled_frame, forte.cpp).
  bool is_noted_call(const TrueFrame& wanted) const {
    return wanted.sp != 0 && wanted.pc == noted_.pc && wanted.sp == noted_.sp;
  }

  // Some frames that are inlined in the code, and then the code's own.
  bool inlined(size_t f, size_t t) {
    std::array<DebugInfo::JavaFrame, 64> chain;
    for (size_t end = f; end <= frames_.size() && end - f < chain.size(); ++end) {
      if (end == frames_.size()) break;
      chain[end - f] = {frames_[end].method, frames_[end].bci};
      stands_for(end, t + 1);
      const bool whole =
          frames_[end].method == truth_[t + 1].method &&
          (end == f || truth_[t].code->has_inlined(std::span(chain).first(end - f + 1)));
      if (whole && from(end, t + 1)) return true;
    }
    return from(f, t + 1);
  }

  void stands_for(size_t f, size_t t) {
    if (f < kMostPlaced) truth_of_[f] = static_cast<uint16_t>(t);
  }

  void note(size_t f, size_t t) {
    if (has_missed_ && f <= frame_) return;
    has_missed_ = true;
    frame_ = f;
    place_ = t;
  }

  const std::span<const Frame> frames_;
  const std::span<const TrueFrame> truth_;
  const WalkerTraits& walker_;
  const MethodTable& methods_;
  const bool cut_;
  const NotedPlace noted_;
  const bool stopped_;
  bool has_missed_ = false;
  size_t frame_ = 0, place_ = 0;
  static constexpr size_t kMostPlaced = 64;
  std::array<uint16_t, kMostPlaced> truth_of_;
};

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view kNames[] = {"right", "refused", "short",
                                         "wrong", "failed",  "unjudged"};
  return name_in(kNames, verdict);
}

Judgement judge(std::span<const Frame> frames, std::span<const TrueFrame> truth,
                const WalkerTraits& walker, const MethodTable& methods, bool cut,
                const NotedPlace& noted, bool stopped) {
  if (frames.empty()) {
    const auto first = std::ranges::find(truth, Sort::frame, &TrueFrame::sort);
    if (first == truth.end()) return {.verdict = Verdict::right};
    return {.verdict = Verdict::refused, .clause = "no-frames", .expected = &*first};
  }
  Match match(frames, truth, walker, methods, cut, noted, stopped);
  if (match.from(0, 0)) {
    const size_t elsewhere = match.first_elsewhere();
    if (elsewhere == frames.size()) return {.verdict = Verdict::right};
    return {.verdict = Verdict::wrong,
            .clause = kFrameElsewhere,
            .at = elsewhere,
            .expected = &truth[match.truth_of(elsewhere)]};
  }
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
