#include "harness/executor/poll_answer.h"

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
  } else if (is_of_now || !walker.documented_error(*count)) {
    violations.broken("no-answer-at-poll",
                      "the thread answered " + std::string(walker.error_name(*count)));
  }
  outcome.findings = violations.take();
  for (Finding& finding : outcome.findings) finding.input = input;
  return outcome;
}

}  // namespace framestorm
