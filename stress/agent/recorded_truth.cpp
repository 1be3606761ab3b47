#include "stress/agent/recorded_truth.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "stress/agent/inlining.h"
#include "stress/agent/recorded_files.h"

namespace framestorm::stress {
namespace {

using nlohmann::json;

// Of a profiler's ticks as the JVM's: it may have asked for both at different moments.
constexpr int64_t kMostDifferenceNs = 50'000;
constexpr double kLeastMatched = 0.95;
constexpr size_t kMostExamples = 20;

// --- which call of the handler took a sample

// A profiler's ticks on the observer's clock.
class Clock {
 public:
  Clock() = default;
  explicit Clock(std::vector<std::pair<int64_t, int64_t>> known) : known_(std::move(known)) {
    const auto& [first, last] = std::tie(known_.front(), known_.back());
    if (last.first != first.first) {
      ns_per_tick_ = static_cast<double>(last.second - first.second) /
                     static_cast<double>(last.first - first.first);
    }
  }

  int64_t ns(int64_t ticks) const {
    if (known_.empty()) return ticks + difference_ns_;
    auto near = std::ranges::lower_bound(known_, ticks, {}, &std::pair<int64_t, int64_t>::first);
    if (near == known_.end()) --near;
    return near->second + difference_ns_ +
           static_cast<int64_t>(static_cast<double>(ticks - near->first) * ns_per_tick_);
  }

  // Takes the difference by which most samples fall into a call.
  void adjust(const std::vector<Sampled>& samples, const Shadows& shadows) {
    std::vector<std::pair<int64_t, int>> ends;  // where calls begin to fit, and cease to
    for (const Sampled& sample : samples) {
      const auto* const handlers = shadows.of(sample);
      if (handlers == nullptr) continue;
      const int64_t at = ns(sample.ticks);
      auto one = std::ranges::lower_bound(*handlers, at - kMostDifferenceNs, {}, &Handler::end_ns);
      for (; one != handlers->end() && one->begin_ns <= at + kMostDifferenceNs; ++one) {
        ends.emplace_back(std::max(one->begin_ns - at, -kMostDifferenceNs), 1);
        ends.emplace_back(std::min(one->end_ns - at, kMostDifferenceNs) + 1, -1);
      }
    }
    std::ranges::sort(ends);
    int fit = 0;
    int most = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      fit += ends[i].second;
      if (fit <= most) continue;
      most = fit;
      const int64_t until = i + 1 < ends.size() ? ends[i + 1].first : ends[i].first;
      difference_ns_ = (ends[i].first + until) / 2;
    }
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> known_;  // empty: the same clock
  double ns_per_tick_ = 1;
  int64_t difference_ns_ = 0;
};

const Handler* handler_at(const std::vector<Handler>* handlers, int64_t at) {
  if (handlers == nullptr) return nullptr;
  const auto behind = std::ranges::upper_bound(*handlers, at, {}, &Handler::begin_ns);
  if (behind == handlers->begin()) return nullptr;
  const Handler& found = *(behind - 1);
  return at <= found.end_ns ? &found : nullptr;
}

struct Matched {
  std::vector<const Handler*> handlers;  // by the sample
  // Samples from before the observer's time, or of threads that were not its own.
  size_t not_observed = 0;
};

Matched matched(const std::vector<Sampled>& samples, const Shadows& shadows) {
  std::vector<Clock> clocks(1);
  if (!shadows.clock().empty()) clocks.emplace_back(shadows.clock());
  Matched best = {std::vector<const Handler*>(samples.size()), samples.size()};
  ptrdiff_t most = 0;
  for (Clock& clock : clocks) {
    clock.adjust(samples, shadows);
    Matched found;
    for (const Sampled& sample : samples) {
      const auto* const handlers = shadows.of(sample);
      const int64_t at = clock.ns(sample.ticks);
      found.handlers.push_back(handler_at(handlers, at));
      if (handlers == nullptr || at < handlers->front().begin_ns) ++found.not_observed;
    }
    const ptrdiff_t count =
        std::ssize(found.handlers) - std::ranges::count(found.handlers, nullptr);
    if (count > std::exchange(most, std::max(most, count))) best = std::move(found);
  }
  return best;
}

// --- verdicts

struct Judged {
  TruthVerdict verdict = TruthVerdict::right;
  std::string why;
  bool has_more_on_top = false;
};

// Why it cannot be judged; else its verdict.
using Answer = std::pair<std::string, Judged>;

// Whether only what is inlined in the sampled code is wrong.
bool is_other_inlining(const Trace& trace, const Handler& handler, const Shadows& shadows,
                       const Against& against) {
  const DebugInfo* const code = shadows.code(handler.code);
  const auto trace_of = [&shadows](std::span<const DebugInfo::JavaFrame> all) {
    std::vector<NamedFrame> frames;
    for (const auto& [method, bci] : all) {
      const std::string_view whole = MethodNames::name(method);
      const std::string_view name = whole.substr(0, whole.find('('));
      const auto known = shadows.methods().find(std::string(name), whole.substr(name.size()));
      frames.push_back({name, known.value_or(-1), bci, !frames.empty()});
    }
    return instrumented_frames(frames, shadows.methods());
  };
  return code != nullptr && has_other_inlining(trace.plain, *code, trace_of, against);
}

Answer judge(const Trace* trace, const Handler& handler, const Shadows& shadows) {
  if (trace == nullptr || trace->frames.empty()) {
    if (handler.depth == 0) return {"no instrumented frame", {}};
    if (handler.state == ShadowState::of_carrier) return {"virtual thread comes or goes", {}};
    return {"", {TruthVerdict::refused, "no frame of Java"}};
  }
  // Its frames may all be in the heap while the shadow stack is still its own.
  const bool has_frames = !trace->instrumented.empty() || handler.depth > 0;
  if (handler.state == ShadowState::of_carrier && has_frames &&
      (trace->of_continuation || trace->cut)) {
    return {"virtual thread comes or goes", {}};
  }
  const std::vector<int32_t>& stack = shadows.stack(handler.stack);
  const Against against = {.shadow = stack,
                           .depth = handler.depth,
                           .complete = !trace->cut && handler.state != ShadowState::mounted,
                           .may_lack_innermost = handler.may_lack_innermost};
  std::string why;
  Compared compared =
      compare_frames(trace->frames, trace->instrumented, against, shadows.methods(), &why);
  if (!why.empty()) return {"", {compared.verdict, why}};
  if (!is_wrong(compared.verdict)) return {"", {compared.verdict, ""}};
  if (is_other_inlining(*trace, handler, shadows, against)) {
    compared.verdict = TruthVerdict::other_inlining;
  }
  return {
      "",
      {compared.verdict,
       difference(compared, trace->instrumented, stack, shadows.methods()) + ", in " + handler.kind,
       compared.has_more_on_top}};
}

// Verdicts as the figures of recordings have them.
std::string_view recordings_verdict(TruthVerdict verdict) {
  switch (verdict) {
    case TruthVerdict::refused:
      return "none";
    case TruthVerdict::shorter:
      return "short";
    case TruthVerdict::wrong_bci:
      return "misplaced";
    default:
      return "wrong";
  }
}

class Figures {
 public:
  void leave(const std::string& why, uint64_t times = 1) { not_judged_[why] += times; }

  void count(const Judged& judged, const Handler& handler, const Trace* trace) {
    ++verdicts_[static_cast<size_t>(judged.verdict)];
    auto& [of_kind, wrong] = by_code_[handler.kind];
    ++of_kind;
    if (is_wrong(judged.verdict)) ++wrong;
    if (judged.has_more_on_top) ++more_on_top_;
    if (judged.why.empty()) return;
    ++positions_[{judged.verdict, handler.place}];
    Example& example = examples_[{judged.verdict, judged.why}];
    if (++example.count > 1) return;
    example.trace = trace;
    example.kind = handler.kind;
  }

  json truth(const std::string& walker) const {
    json verdicts = json::object();
    uint64_t judged = 0;
    uint64_t wrong = 0;
    for (size_t i = 0; i < verdicts_.size(); ++i) {
      const auto verdict = static_cast<TruthVerdict>(i);
      verdicts[std::string(name_of(verdict))] = verdicts_[i];
      judged += verdicts_[i];
      if (is_wrong(verdict)) wrong += verdicts_[i];
    }
    json by_code = json::object();
    for (const auto& [kind, counts] : by_code_) {
      by_code[kind] = {{"judged", counts.first}, {"wrong", counts.second}};
    }
    json positions = json::array();
    for (const auto& [key, count] : positions_) {
      positions.push_back(
          {{"verdict", name_of(key.first)}, {"error", ""}, {"at", key.second}, {"count", count}});
    }
    const json none = {{"made", 0}, {"broken", 0}};
    return {{"walkers",
             {{walker,
               {{"judged", judged},
                {"wrong", wrong},
                {"more_on_top", more_on_top_},
                {"verdicts", verdicts},
                {"not_judged", not_judged_},
                {"by_code", by_code},
                {"positions", positions},
                {"safepoint", none},
                {"sandwich", none}}}}},
            {"reference", none}};
  }

  // The commonest of each verdict.
  json examples() const {
    std::vector<std::pair<uint64_t, json>> all;
    for (const auto& [key, value] : examples_) {
      const auto& [count, kind, trace] = value;
      all.emplace_back(count,
                       json{{"verdict", recordings_verdict(key.first)},
                            {"why", std::string(name_of(key.first)) + ": " + key.second},
                            {"did", std::string(name_of(key.first)) + " in " + kind},
                            {"count", count},
                            {"frames", trace == nullptr ? json::array() : json(trace->texts)}});
    }
    std::ranges::sort(all, std::greater<>(), &std::pair<uint64_t, json>::first);
    std::map<std::string, size_t> kept;
    json examples = json::array();
    for (auto& [count, example] : all) {
      if (++kept[example["verdict"]] <= kMostExamples) examples.push_back(std::move(example));
    }
    return examples;
  }

 private:
  struct Example {
    uint64_t count = 0;
    std::string kind;  // of code
    const Trace* trace = nullptr;
  };

  std::array<uint64_t, static_cast<size_t>(TruthVerdict::count)> verdicts_ = {};
  uint64_t more_on_top_ = 0;
  std::map<std::string, uint64_t> not_judged_;
  std::map<std::string, std::pair<uint64_t, uint64_t>> by_code_;  // judged, wrong
  std::map<std::pair<TruthVerdict, std::string>, uint64_t> positions_;
  std::map<std::pair<TruthVerdict, std::string>, Example> examples_;
};

}  // namespace

json judge_recorded(std::istream& shadows_file, std::istream& traces_file,
                    const std::string& walker) {
  Shadows shadows(shadows_file);
  const Recorded recorded(traces_file, shadows.methods(), shadows.names());
  const std::vector<Sampled>& samples = recorded.samples();
  const auto [handlers, not_observed] = matched(samples, shadows);
  Figures figures;
  const auto missing = static_cast<size_t>(std::ranges::count(handlers, nullptr));
  const size_t lost = not_observed + shadows.lost();
  const size_t expected = samples.size() - std::min(samples.size(), lost);
  const size_t found = samples.size() - missing;
  if (found == 0 || static_cast<double>(found) < kLeastMatched * static_cast<double>(expected)) {
    figures.leave("no clock by which samples are those of handlers", samples.size());
  } else {
    std::map<const Handler*, size_t> of;
    for (const Handler* const handler : handlers) ++of[handler];
    using Key = std::tuple<int64_t, size_t, uint32_t, ShadowState, bool, std::string, int64_t>;
    std::map<Key, Answer> answers;
    for (size_t i = 0; i < samples.size(); ++i) {
      const Handler* const handler = handlers[i];
      if (samples[i].biased) {
        figures.leave("of the next safepoint, as it says");
        continue;
      }
      if (handler == nullptr || of[handler] > 1) {
        figures.leave(handler == nullptr ? "no handler at its time"
                                         : "several samples at the time of one handler");
        continue;
      }
      const Trace* const trace = recorded.trace(samples[i].trace);
      const auto [answer, is_new] =
          answers.try_emplace({samples[i].trace, handler->stack, handler->depth, handler->state,
                               handler->may_lack_innermost, handler->kind, handler->code});
      if (is_new) answer->second = judge(trace, *handler, shadows);
      const auto& [why_not, judged] = answer->second;
      if (!why_not.empty()) {
        figures.leave(why_not);
      } else {
        figures.count(judged, *handler, trace);
      }
    }
  }
  return {{"truth", figures.truth(walker)}, {"examples", figures.examples()}};
}

}  // namespace framestorm::stress
