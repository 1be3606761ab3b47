// What a Stepper does at an instruction where an event is injected.
#include <algorithm>

#include "harness/stepping/stepper.h"
#include "harness/victim/context.h"

namespace framestorm::stepping {
namespace {

// A walk that a signal interrupts has executed less than so many instructions.
constexpr uint64_t kLongestWait = 10;  // as a power of two

constexpr uint64_t kOnTheWay = 2048;  // instructions, about

bool breaks(Verdict verdict) { return verdict == Verdict::wrong || verdict == Verdict::failed; }

}  // namespace

// Java methods are compiled anew for each victim.
StepEvent Stepper::event_at(uintptr_t pc) {
  const StepEvent event = events_.wanted()[turn_ % events_.wanted().size()];
  const Sample& sample = limits_.events_at;
  if (const Blob* const blob = truth_.blob(); blob != nullptr && sample.first > 0) {
    uint64_t& times = injected_[blob->entry.name + "|" + std::string(name_of(event))]
                               [{blob->entry.tier, pc - blob->entry.begin}];
    if (times++ < sample.first) return event;
  }
  return sample.one_in != 0 && random_() % sample.one_in == 0 ? event : StepEvent::none;
}

bool Stepper::is_on_the_way() {
  const bool leads =
      std::ranges::any_of(events_.wanted(), [](StepEvent event) { return !is_of_a_walk(event); });
  return leads && injecting_ && random_() % kOnTheWay == 0;
}

void Stepper::inject(const ucontext_t& context, Instruction* instruction) {
  if (!injecting_ || !events_.can_inject()) return;
  const StepEvent event = event_at(get_register(context, Register::pc));
  if (event == StepEvent::none) return;
  event_point_ = here();
  event_point_.event = event;
  if (is_of_a_walk(event)) {
    walk_nested(event, context, instruction);
    return;
  }
  std::array<jmethodID, EventThread::kMethods> methods;
  size_t count = 0;
  for (const TrueFrame& frame : truth_.expected()) {
    if (frame.method != nullptr && count < methods.size()) methods[count++] = frame.method;
  }
  events_.ask(event, std::span(methods).first(count));
  walk_round(context, instruction);
}

void Stepper::walk_nested(StepEvent event, const ucontext_t& context, Instruction* instruction) {
  mode_ = Mode::same_thread;
  target_.same_thread = true;
  for (size_t i = 0; i < walkers_.size(); ++i) {
    const WalkerTraits& traits = walkers_[i]->traits();
    // Their adapters are no walker of anybody's, and have the state of one walk.
    if (!traits.same_thread || traits.iterator_calls) continue;
    if (only_.any) {
      interrupt(i, random_() % kLongestWait, event, context, instruction);
      continue;
    }
    // The place is met once, and where the walk was interrupted there is not known.
    for (uint64_t power = 0; power < kLongestWait; ++power) {
      interrupt(i, power, event, context, instruction);
    }
  }
}

void Stepper::interrupt(size_t index, uint64_t power, StepEvent event, const ucontext_t& context,
                        Instruction* instruction) {
  Walker& walker = *walkers_[index];
  NestedWalk nested(walker, random_() % (uint64_t{1} << power),
                    event == StepEvent::sigsegv ? &jvm_ : nullptr, thread_copies_);
  const auto found = [&](const Judgement& verdict, std::string detail) {
    keep_event(walker, verdict.verdict,
               {.kind = FindingKind::contract,
                .clause = std::string(verdict.clause),
                .detail = "the inner walk" + std::move(detail),
                .fault = {},
                .input = {},
                .oracle = kSequenceOracle});
  };
  events_.begin_in_walk(event);
  nested_ = &nested;
  walk(index, context, instruction);
  nested_ = nullptr;
  if (nested.happened()) {
    WalkRecord inner;
    inner.walker = walker.id();
    inner.depth = limits_.depth;
    inner.result = nested.result();
    const Judgement judgement = judge_trace(walker, inner, nested_frames_.data());
    count(walker, judgement, inner, instruction);
    // It is in the walker's code, wherever the thread was.
    const std::string detail = detail_of(judgement, inner);
    if (breaks(judgement.verdict)) found(judgement, detail.substr(detail.find(": ")));
  }
  if (const auto at = nested.taken_back()) {
    found({.verdict = Verdict::wrong, .clause = "inner-walk-takes-back"},
          " took back what the outer one had changed in the JavaThread, at byte " +
              std::to_string(*at));
  }
  events_.end_in_walk(nested.happened());
}

bool Stepper::is_so_without(const Plain& plain, size_t column, Verdict verdict) const {
  if (plain.blob == nullptr) return findings_.contains(plain.key);
  return std::ranges::any_of(instructions_, [&](const auto& entry) {
    const auto& [blob, stepped] = entry;
    if (blob->entry.kind != plain.blob->entry.kind || blob->entry.name != plain.blob->entry.name ||
        blob->entry.tier != plain.blob->entry.tier) {
      return false;
    }
    const auto at = stepped.find(plain.offset);
    return at != stepped.end() && at->second.verdicts[column][static_cast<size_t>(verdict)] > 0;
  });
}

void Stepper::keep_event(const Walker& walker, Verdict verdict, Finding finding) {
  if (!breaks(verdict)) return;
  const Blob* const blob = truth_.blob();
  const uintptr_t pc = subject().victim().pc;
  const Plain plain = {
      .key = key_of(walker, verdict, finding),
      .blob = blob,
      .offset = blob == nullptr ? 0U : static_cast<uint32_t>(pc - blob->entry.begin)};
  if (is_so_without(plain, column_of(walker.id(), mode_), verdict)) return;
  const std::string event(name_of(events_.in_force()));
  const std::string key = plain.key + "|" + event + "|" + position(blob, pc);
  found_now_.fetch_add(1, std::memory_order_release);
  StepFinding& kept = findings_[key];
  ++kept.count;
  ++kept.scenarios[std::string(name_of(scenario_))];
  if (kept.count > 1) return;
  plain_[key] = plain;
  finding.detail.insert(0, event + ": ");
  finding.input = input_of(walker);
  finding.input.halt = event_point_;
  kept.event = events_.in_force();
  keep_first(&kept, verdict, std::move(finding));
}

bool Stepper::stands(const std::string& key) const {
  const auto plain = plain_.find(key);
  if (plain == plain_.end()) return true;
  const StepFinding& found = findings_.at(key);
  const Input& input = found.finding.input;
  return !is_so_without(plain->second, column_of(input.walker, input.mode), found.verdict);
}

void Stepper::settle() {
  end_event();
  std::erase_if(findings_, [this](const auto& found) { return !stands(found.first); });
  plain_.clear();
}

}  // namespace framestorm::stepping
