#include "harness/executor/poll_answer.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "harness/base/clock.h"
#include "harness/input/walker_table.h"
#include "harness/victim/natives.h"
#include "harness/victim/scenario.h"
#include "harness/victim/world.h"
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

// Whether an answer begins with these.
bool begins_with(JavaFrames answered, std::span<const DebugInfo::JavaFrame> compiled) {
  if (compiled.empty() || answered.size() < compiled.size()) return false;
  for (size_t i = 0; i < compiled.size(); ++i) {
    const bool is_known = answered[i].method != nullptr && answered[i].bci != kNoBci &&
                          compiled[i].method != nullptr && compiled[i].bci >= 0;
    if (is_known &&
        (answered[i].method != compiled[i].method || answered[i].bci != compiled[i].bci)) {
      return false;
    }
  }
  return true;
}

// Whether an answer has all frames that were requested but some innermost ones.
bool skips_frames(JavaFrames answered, JavaFrames requested) {
  if (answered.empty() || answered.size() >= requested.size()) return false;
  return std::ranges::equal(answered, requested.last(answered.size()),
                            [](const JavaFrame& now, const JavaFrame& then) {
                              return now.has_method_of(then, /*anywhere=*/true);
                            });
}

// What an answer begins with instead of the frame that the thread was in; empty: with that. No frame is left
// without a poll but by an exception, where its bci is not known, or by a virtual thread that unmounts. An
// interpreted one has gone on to another bytecode; JFR gives the one that the request has, if it has one. Of a
// compiled one JFR gives the next place with debug information.
std::string why_elsewhere(JavaFrames answered, const Outcome& walked, const CodeMap& code) {
  const JavaFrame& then = walked.requested.front();
  const JavaFrame& now = answered.front();
  if (then.bci == kNoBci) return {};
  if (then.has_method_of(now, /*anywhere=*/true) && then.is_interpreted() && now.is_interpreted() &&
      walked.requested_bci != kNoBci && now.bci != walked.requested_bci) {
    return "frame 0 has bci " + std::to_string(now.bci) + ", and the request has " +
           std::to_string(walked.requested_bci);
  }
  const CodeEntry* const entry = code.find(then.pc);
  bool is_there = now.has_method_of(then);
  if (then.is_compiled() && entry != nullptr && entry->debug != nullptr &&
      entry->debug->has_places()) {
    is_there = begins_with(answered, entry->debug->at(then.pc)) ||
               begins_with(answered, entry->debug->after(then.pc));
  }
  if (is_there) return {};
  return "frame 0 is not the one that was requested, " + how_it_runs(then) + ", at bci " +
         std::to_string(then.bci) + ", but has bci " + std::to_string(now.bci);
}

// Releases the world once the victim's poll is armed, so that it answers at the first one that it comes to.
class ReleaseWhenArmed {
 public:
  explicit ReleaseWhenArmed(const Victim& victim)
      : asking_(gettid()),
        thread_(static_cast<const std::byte*>(victim.java_thread)),
        halted_(thread_, thread_ + victim.thread_copy.size()),
        releasing_([this](const std::stop_token& answered) { release(answered); }) {}

  // Once it has answered. Whether it could not run past a poll before.
  bool answered() {
    releasing_.request_stop();
    releasing_.join();
    return !gave_up_;
  }

 private:
  // A VM thread that was halted in a safepoint keeps the handshake from beginning: who asks sleeps. On a busy
  // machine it may get no core for longer than that.
  static constexpr uint64_t kPatienceNs = 2'000'000;

  // On a thread of its own. Whoever asks joins it once it has the answer, and sleeps then, too.
  void release(const std::stop_token& answered) {
    const uint64_t begin_ns = monotonic_ns();
    uint64_t asleep_since_ns = 0;  // 0: it was not, when last looked at
    while (!answered.stop_requested() && !is_armed() && !gave_up_) {
      // Who asks may need this core.
      std::this_thread::sleep_for(natives::kGlance);
      const uint64_t now_ns = monotonic_ns();
      if (!status_of(asking_).sleeps) {
        asleep_since_ns = 0;
      } else if (asleep_since_ns == 0) {
        asleep_since_ns = now_ns;
      }
      const bool waits = asleep_since_ns != 0 && now_ns - asleep_since_ns >= kPatienceNs;
      gave_up_ = !answered.stop_requested() && (waits || now_ns - begin_ns >= kSecond);
    }
    World::get().release_all();
  }

  // While the world is halted nobody else writes to a JavaThread. A poll is its word, and then its page
  // (SafepointMechanism::ThreadData). Disarmed, the word is even and not 0, in which it differs from a mutex's.
  bool is_armed() const {
    constexpr size_t kWord = sizeof(uintptr_t);
    for (size_t at = 0; at + 2 * kWord <= halted_.size(); at += kWord) {
      const auto word = read_at<uintptr_t>(halted_.data(), at);
      if (word != 0 && word % 2 == 0 && now(at) == 1 &&
          now(at + kWord) != read_at<uintptr_t>(halted_.data(), at + kWord)) {
        return true;
      }
    }
    return false;
  }

  uintptr_t now(size_t at) const {
    return __atomic_load_n(reinterpret_cast<const uintptr_t*>(thread_ + at), __ATOMIC_ACQUIRE);
  }

  int asking_;
  const std::byte* thread_;
  std::vector<std::byte> halted_;
  bool gave_up_ = false;
  std::jthread releasing_;
};

// Of an answer with frames. `is_of_now`: to a request of where the thread was. `at_first_poll`: as of Outcome.
void judge(Session& session, const Input& input, const Outcome& walked, bool is_of_now,
           bool at_first_poll, const std::byte* memory, size_t count, Violations* out) {
  Executor& executor = session.executor();
  const WalkerTraits& walker = traits_of(input.walker);
  const ScenarioInfo& scenario = scenario_info(input.scenario);
  std::vector<Frame> frames(count);
  for (size_t i = 0; i < count; ++i) frames[i] = read_frame(walker.layout, memory, i);
  std::vector<std::string> names;
  for (auto& frame : executor.name_frames(frames)) names.push_back(std::move(frame.method));
  const std::string wrong = why_wrong(names, scenario, walker, is_of_now);
  if (!is_of_now) {
    if (!wrong.empty()) out->broken("wrong-frames", wrong + ", answered at a poll");
    return;
  }
  const CodeMap& code = session.jvm().code_map();
  std::vector<JavaFrame> answered;
  read_java_frames(walker, memory, count, code, session.jvm().methods(), &answered);
  if (!wrong.empty()) {
    if (skips_frames(answered, walked.requested)) {
      out->broken("sample-skips-frames",
                  "the answer begins with a frame further out than the innermost");
    } else {
      out->broken("wrong-frames", wrong + ", answered at a poll");
    }
    return;
  }
  const std::string unlike = why_unlike(answered, walked.requested);
  if (!unlike.empty()) out->broken("wrong-frame-types", unlike + ", answered at a poll");
  const bool may_unmount = !scenario.thawed_trace.empty();
  if (!walked.requested_stands || !at_first_poll || may_unmount || answered.empty()) return;
  const std::string elsewhere = why_elsewhere(answered, walked, code);
  if (!elsewhere.empty()) out->broken("sample-elsewhere", elsewhere);
}

}  // namespace

Outcome answer_at_poll(Session& session, const Input& input, const Outcome& walked) {
  Walker& walker = *session.executor().walker(input.walker);
  const Victim& victim = session.victims().of(input.scenario);
  FrameBuffer buffer(walker.layout().stride, kDepth);
  std::byte* const memory = buffer.place(kDepth);
  ReleaseWhenArmed releasing(victim);
  const std::optional<int32_t> count =
      walker.answer(session.jvm().env(), victim.java_thread, memory, kDepth);
  const bool at_first_poll = releasing.answered();
  session.release_world();
  session.jvm().methods().absorb();

  // What the registers say as they are is no request that JFR makes.
  const bool is_of_now = walked.unmutated && (input.call.options & kStaleSample) == 0;
  Outcome outcome;
  outcome.status = Outcome::Status::walked;
  outcome.unmutated = walked.unmutated;
  outcome.result = count.value_or(0);
  outcome.at_first_poll = at_first_poll;
  Violations violations;
  if (!count) {
    violations.broken("fault-at-poll", "a fault while the thread answered at a poll");
  } else if (*count > 0) {
    judge(session, input, walked, is_of_now, at_first_poll, memory, static_cast<size_t>(*count),
          &violations);
  } else if (is_of_now || !walker.documented_error(*count)) {
    violations.broken("no-answer-at-poll",
                      "the thread answered " + std::string(walker.error_name(*count)));
  }
  outcome.findings = violations.take();
  for (Finding& finding : outcome.findings) finding.input = input;
  return outcome;
}

}  // namespace framestorm
