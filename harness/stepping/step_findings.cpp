// What a Stepper keeps of what it finds, and how it tells of it.
#include <algorithm>

#include "harness/base/hex.h"
#include "harness/stepping/stepper.h"

namespace framestorm::stepping {
namespace {

constexpr size_t kShownFrames = 24;
constexpr size_t kOthers = 4;
constexpr size_t kKeptStack = 2048;  // bytes

}  // namespace

std::string Stepper::position(const Blob* blob, uintptr_t pc) const {
  if (blob != nullptr) return blob->entry.name + "+" + std::to_string(pc - blob->entry.begin);
  const auto at = jvm_.code_map().describe(pc);
  return at ? at->ref.name + "+" + std::to_string(at->delta) : std::string("outside libjvm");
}

std::vector<std::string> Stepper::path() const {
  std::vector<std::string> lines;
  const uint64_t count = std::min<uint64_t>(counts_.steps, passed_.size());
  for (uint64_t back = 1; back <= count; ++back) {
    const Passed& passed = passed_[(counts_.steps - back) % passed_.size()];
    lines.push_back(position(passed.blob, passed.at.pc) + " sp " + hex(passed.at.sp) + " fp " +
                    hex(passed.at.fp) + " activations " + std::to_string(passed.activations));
  }
  return lines;
}

std::string Stepper::name(const Frame& frame) const {
  return method_name(frame, jvm_.methods()) + "@" + std::to_string(frame.bci);
}

std::string Stepper::name(const TrueFrame& frame) const {
  const MethodInfo* const info = jvm_.methods().find(frame.method);
  std::string text = info == nullptr ? "?" : info->name;
  if (frame.bci != kAnyBci) text += "@" + std::to_string(frame.bci);
  switch (frame.sort) {
    case TrueFrame::Sort::optional:
      return "perhaps " + text;
    case TrueFrame::Sort::inlined:
      return "perhaps inlined frames";
    case TrueFrame::Sort::frozen:
      return "perhaps frozen from here on";
    case TrueFrame::Sort::carrier:
      return "perhaps the carrier's frames";
    case TrueFrame::Sort::frame:
      break;
  }
  return text;
}

// Where and what, the same for all that is wrong in the same way; then what was expected.
std::string Stepper::detail_of(const Judgement& judgement, const WalkRecord& record) const {
  const Blob* const blob = truth_.blob();
  std::string text(section_);
  if (blob != nullptr && blob->entry.kind != CodeKind::nmethod) text += " " + blob->entry.name;
  if (frames_.empty()) {
    text += ": no frames, result " + std::to_string(record.result);
  } else if (judgement.at < frames_.size()) {
    text += ": frame " + std::to_string(judgement.at) + " is " + name(frames_[judgement.at]);
  } else {
    text += ": the trace ends after " + std::to_string(judgement.at) + " frames";
  }
  if (judgement.clause == kFrameElsewhere) {
    const Frame& frame = frames_[judgement.at];
    return text + " at pc " + hex(frame.pc) + ", sp " + hex(frame.sp) + ", where it is at pc " +
           hex(judgement.expected->pc) + ", sp " + hex(judgement.expected->sp);
  }
  return text + ", expected " +
         (judgement.expected == nullptr ? "the end of the stack" : name(*judgement.expected));
}

HaltPoint Stepper::here() {
  const Victim& victim = subject().victim();
  const auto at = jvm_.code_map().describe(victim.pc);
  if (!at) return {};
  return {.any = false,
          .code = at->ref,
          .delta = at->delta,
          .has_frame_offset = true,
          .frame_offset = static_cast<uint32_t>(target_.stack_base - victim.sp),
          .occurrence = 1};
}

ProgramHalt Stepper::program_halt() const {
  const ThreadLayout& layout = jvm_.layout();
  void* const thread = target_.java_thread;
  ProgramHalt halt;
  halt.tid = target_.tid;
  halt.java_thread = thread;
  halt.thread_state = read_at<uint32_t>(thread, layout.state);
  halt.last_java_sp = read_at<uintptr_t>(thread, layout.last_java_sp);
  halt.last_java_pc = read_at<uintptr_t>(thread, layout.last_java_pc);
  halt.last_java_fp = read_at<uintptr_t>(thread, layout.last_java_fp);
  halt.stack_base = target_.stack_base;
  halt.stack_end = target_.stack_end;
  std::copy_n(expected_.uc_mcontext.gregs, NGREG, halt.registers.begin());
  const uintptr_t sp = get_register(expected_, Register::sp);
  const auto* const stack = reinterpret_cast<const std::byte*>(sp);
  halt.stack.assign(stack, stack + std::min<size_t>(kKeptStack, target_.stack_base - sp));
  halt.depth = limits_.depth;
  halt.result = result_;
  return halt;
}

Input Stepper::input_of(const Walker& walker) {
  Input input;
  input.scenario = scenario_;
  input.mode = mode_;
  input.walker = walker.id();
  input.halt = here();
  return input;
}

std::string Stepper::code_name() const {
  const Blob* const blob = truth_.blob();
  if (blob == nullptr) return "native code";
  return blob->entry.kind == CodeKind::nmethod ? std::string() : blob->entry.name;
}

std::string Stepper::key_of(const Walker& walker, Verdict verdict, const Finding& finding) const {
  const std::string code = code_name();
  std::string key(walker.traits().name);
  for (const std::string_view part :
       {name_of(mode_), std::string_view(finding.clause), section_, std::string_view(code)}) {
    key.append("|").append(part);
  }
  if (verdict == Verdict::refused) {
    key.append("|").append(finding.detail, 0, finding.detail.find(", expected"));
  }
  return key;
}

void Stepper::keep(const Walker& walker, Verdict verdict, Finding finding, bool promised) {
  if (events_.in_force() != StepEvent::none) {
    keep_event(walker, verdict, std::move(finding));
    return;
  }
  const std::string key = key_of(walker, verdict, finding) + (promised ? "" : "|by design");
  found_now_.fetch_add(1, std::memory_order_release);
  StepFinding& kept = findings_[key];
  ++kept.count;
  const bool first_of_scenario = ++kept.scenarios[std::string(name_of(scenario_))] == 1;
  if (kept.count > 1 && (!first_of_scenario || kept.others.size() == kOthers)) return;
  finding.input = input_of(walker);
  if (kept.count > 1) {
    kept.others.push_back(std::move(finding));
    return;
  }
  kept.promised = promised;
  keep_first(&kept, verdict, std::move(finding));
}

void Stepper::keep_first(StepFinding* into, Verdict verdict, Finding finding) {
  StepFinding& kept = *into;
  kept.verdict = verdict;
  kept.section = section_;
  kept.code = code_name();
  kept.finding = std::move(finding);
  kept.position = position(truth_.blob(), subject().victim().pc);
  kept.path = path();
  if (scenario_ == ScenarioId::count) {
    kept.halt = std::make_shared<const ProgramHalt>(program_halt());
  }
  const size_t shown = std::min(frames_.size(), kShownFrames);
  kept.frames.assign(frames_.begin(), frames_.begin() + static_cast<ptrdiff_t>(shown));
  for (const Frame& frame : kept.frames) kept.trace.push_back(name(frame));
  for (const TrueFrame& frame :
       truth_.expected().first(std::min(truth_.expected().size(), kShownFrames))) {
    kept.truth.push_back(name(frame));
  }
}

}  // namespace framestorm::stepping
