#include "harness/executor/poll_answer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness/input/walker_table.h"
#include "harness/victim/scenario.h"
#include "harness/walk/frame_buffer.h"

namespace framestorm {
namespace {

constexpr int32_t kDepth = 2048;
constexpr std::string_view kOutermost = "framestorm/Victim.run";

// Why frames ("pkg/Class.method") are not the thread's; empty: they are.
std::string why_wrong(const std::vector<std::string>& names, const ScenarioInfo& scenario,
                      const WalkerTraits& walker, bool is_of_now) {
  const bool truncated = names.size() == kDepth;
  std::string why;
  if (is_of_now) {
    matches(names, scenario, walker, &why, truncated);
  } else if (!truncated && scenario.trace.ends_with(kOutermost) && names.back() != kOutermost) {
    why = "the last frame is " + names.back() + ", expected " + std::string(kOutermost);
  }
  return why;
}

// Which frame is called compiled and is inlined, or the reverse; empty: none. Compared are those that the
// thread still has, which are the outermost, up to where a method or its bci differs. Whether one is
// interpreted may have changed since: it may have been deoptimised, or replaced on the stack.
std::string why_unlike(JavaFrames answered, JavaFrames requested) {
  // A carrier's frames are not in a virtual thread's trace.
  while (!answered.empty() && !requested.empty() &&
         !requested.back().has_method_of(answered.back())) {
    requested = requested.first(requested.size() - 1);
  }
  for (size_t i = 1; i <= std::min(answered.size(), requested.size()); ++i) {
    const JavaFrame& now = answered[answered.size() - i];
    const JavaFrame& then = requested[requested.size() - i];
    if (!now.has_method_of(then) || !now.has_bci_of(then)) break;
    if (now.is_compiled() && then.is_compiled() && now.is_inlined() != then.is_inlined()) {
      return "frame " + std::to_string(answered.size() - i) + " is " + how_it_runs(now) +
             ", and was " + how_it_runs(then) + " where it was requested";
    }
  }
  return {};
}

}  // namespace

Outcome answer_at_poll(Session& session, const Input& input, const Outcome& walked) {
  Executor& executor = session.executor();
  Walker& walker = *executor.walker(input.walker);
  void* const thread = session.victims().of(input.scenario).java_thread;
  session.release_world();
  FrameBuffer buffer(walker.layout().stride, kDepth);
  std::byte* const memory = buffer.place(kDepth);
  const std::optional<int32_t> count = walker.answer(session.jvm().env(), thread, memory, kDepth);
  session.jvm().methods().absorb();

  // What the registers say as they are is no request that JFR makes.
  const bool is_of_now = walked.unmutated && (input.call.options & kStaleSample) == 0;
  Outcome outcome;
  outcome.status = Outcome::Status::walked;
  outcome.unmutated = walked.unmutated;
  outcome.result = count.value_or(0);
  Violations violations;
  if (!count) {
    violations.broken("fault-at-poll", "a fault while the thread answered at a poll");
  } else if (*count > 0) {
    std::vector<Frame> frames(static_cast<size_t>(*count));
    for (size_t i = 0; i < frames.size(); ++i) {
      frames[i] = read_frame(walker.layout(), memory, i);
    }
    std::vector<std::string> names;
    for (auto& frame : executor.name_frames(frames)) names.push_back(std::move(frame.method));
    const std::string why =
        why_wrong(names, scenario_info(input.scenario), walker.traits(), is_of_now);
    if (!why.empty()) violations.broken("wrong-frames", why + ", answered at a poll");
    if (is_of_now && why.empty()) {
      std::vector<JavaFrame> answered;
      read_java_frames(walker.traits(), memory, frames.size(), session.jvm().code_map(),
                       session.jvm().methods(), &answered);
      const std::string unlike = why_unlike(answered, walked.requested);
      if (!unlike.empty()) violations.broken("wrong-frame-types", unlike + ", answered at a poll");
    }
  } else if (is_of_now || !walker.documented_error(*count)) {
    violations.broken("no-answer-at-poll",
                      "the thread answered " + std::string(walker.error_name(*count)));
  }
  outcome.findings = violations.take();
  for (Finding& finding : outcome.findings) finding.input = input;
  return outcome;
}

}  // namespace framestorm
