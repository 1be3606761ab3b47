// What a Stepper says of a walk: the verdict on its trace, and what the other oracles say of it.
#include <algorithm>

#include "harness/input/thread_state.h"
#include "harness/stepping/stepper.h"
#include "harness/stepping/told.h"

namespace framestorm::stepping {
namespace {

// Of walks that look clean, oracles look at one in so many.
constexpr uint64_t kOracleShare = 64;

// For the methods of a class that another thread is just preparing. Then a walker makes IDs up.
constexpr int kMostWaits = 100;

}  // namespace

Finding Stepper::finding_of(const Judgement& judgement, const WalkRecord& record) const {
  Finding finding = {.kind = FindingKind::contract, .clause = std::string(judgement.clause)};
  finding.oracle = kSequenceOracle;
  if (judgement.verdict != Verdict::failed) finding.detail = detail_of(judgement, record);
  return finding;
}

// Refused and short traces may be by design: of walkers that trust little, and while the VM does what a
// walk must not meet.
bool Stepper::is_promised(const Walker& walker, const Judgement& judgement,
                          const WalkRecord& record) const {
  const WalkerTraits& traits = walker.traits();
  const bool refused = judgement.verdict == Verdict::refused;
  if (!refused && judgement.verdict != Verdict::too_short) return true;
  if (traits.ends_where_it_distrusts_a_frame || traits.needs_registers_only) return false;
  if (!refused && traits.says_when_cut && record.stopped() != nullptr) return false;
  const WalkerError* const error = refused ? traits.find_error(record.result) : nullptr;
  const Blob* const blob = truth_.blob();
  // The VM changes the state of a thread that deoptimises after it was called.
  const bool in_vm = !is_in_java(record.thread_state) || blob == nullptr || is_deoptimisation(blob);
  return error == nullptr || !error->not_safe || !in_vm;
}

Judgement Stepper::judge_trace(const Walker& walker, const WalkRecord& record,
                               const std::byte* frames) {
  frames_.clear();
  const bool typed = walker.layout().type >= 0;
  for (size_t i = 0; i < record.frame_count(); ++i) {
    const Frame frame = read_frame(walker.layout(), frames, i, jvm_.code_map());
    if (typed ? is_java(frame.type) : frame.method != nullptr) frames_.push_back(frame);
  }
  if (record.end != WalkEnd::returned) {
    return {.verdict = Verdict::failed, .clause = "walk-did-not-return"};
  }
  if (!walker.traits().gives_traces()) return {};
  if (truth_.knowledge() != Knowledge::known) {
    for (const Frame& frame : frames_) {
      if (jvm_.methods().find(frame.method) == nullptr) versions_.first_of(frame.method);
    }
    return {};
  }
  const bool cut = record.frame_count() == static_cast<size_t>(limits_.depth);
  const Judgement judgement = judge(frames_, truth_.expected(), walker.traits(), jvm_.methods(),
                                    cut, noted_place(), record.stopped() != nullptr);
  // An event may have replaced a frame, and the return address that leads to it.
  if (judgement.clause == kFrameElsewhere && events_.in_force() != StepEvent::none) {
    return {.verdict = Verdict::right};
  }
  if (judgement.verdict == Verdict::right && !cut && is_said_to_be_cut(walker, record)) {
    return {.verdict = Verdict::wrong, .clause = "says-cut-where-whole", .at = frames_.size()};
  }
  return judgement.verdict == Verdict::wrong ? judge_by_versions(walker, judgement, record, cut)
                                             : judgement;
}

NotedPlace Stepper::noted_place() {
  const Victim& victim = subject().victim();
  return {victim.last_java_pc(jvm_.layout()), victim.last_java_sp(jvm_.layout())};
}

// A trace that has all frames of the stack. Those that are in the heap may be missing, and three registers
// do not say where the stack's last frame is.
bool Stepper::is_said_to_be_cut(const Walker& walker, const WalkRecord& record) const {
  const WalkerTraits& traits = walker.traits();
  return traits.is_added() && !traits.needs_registers_only && record.cut() != nullptr &&
         std::ranges::find(truth_.expected(), TrueFrame::Sort::frozen, &TrueFrame::sort) ==
             truth_.expected().end();
}

Judgement Stepper::judge_by_versions(const Walker& walker, const Judgement& first,
                                     const WalkRecord& record, bool cut) {
  by_versions_.assign(truth_.expected().begin(), truth_.expected().end());
  for (TrueFrame& frame : by_versions_) {
    if (frame.method == nullptr) continue;
    versions_.know(frame.method);
    const jmethodID id = versions_.first_of(frame.method);
    const bool is_replaced = id != frame.method || jvm_.methods().is_replaced(id);
    // The event makes the same method again, which keeps its ID.
    frame.may_have_no_id |= is_replaced && scenario_ == ScenarioId::count;
    frame.method = id;
  }
  std::vector<Frame> frames = frames_;
  for (Frame& frame : frames) frame.method = versions_.first_of(frame.method);
  const Judgement judgement = judge(frames, by_versions_, walker.traits(), jvm_.methods(), cut,
                                    noted_place(), record.stopped() != nullptr);
  return judgement.verdict == Verdict::right ? judgement : first;
}

void Stepper::wait_for_methods() {
  const auto is_known = [this](const Frame& frame) {
    return frame.method == nullptr || jvm_.methods().find(frame.method) != nullptr;
  };
  if (waits_ == kMostWaits || std::ranges::all_of(frames_, is_known)) return;
  ++waits_;
  wait_until_told([&] {
    jvm_.methods().try_absorb();
    return std::ranges::all_of(frames_, is_known);
  });
}

void Stepper::ask_oracles(const Walker& walker, const WalkRecord& record) {
  // What a walk does beside its trace, it does without the event, but for what a collection forbids.
  const bool with_event = events_.in_force() != StepEvent::none;
  const bool returned = record.end == WalkEnd::returned;
  if (with_event && returned && !record.in_collection) return;
  const WalkView view = {record, subject().of(walker, limits_.depth, record.options)};
  wait_for_methods();
  const bool is_due = mutants_ != nullptr || counts_.walked % kOracleShare == 0;
  if (!oracles_.suspect(view, oracles_.offered()) && !is_due) return;
  oracles_.judge(view, oracles_.offered(), &violations_);
  for (Finding& finding : violations_.take()) {
    // The trace may be right; of events only what breaks is kept.
    const Verdict of_it = with_event ? Verdict::wrong : Verdict::right;
    keep(walker, returned ? of_it : Verdict::failed, std::move(finding), true);
  }
}

void Stepper::count(const Walker& walker, const Judgement& judgement, const WalkRecord& record,
                    Instruction* instruction) {
  const size_t column = column_of(walker.id(), mode_);
  const auto verdict = static_cast<size_t>(judgement.verdict);
  const bool with_event = events_.in_force() != StepEvent::none;
  auto found = with_event ? sections_.end() : sections_.find(section_);
  if (!with_event && found == sections_.end()) {
    found = sections_.emplace(section_, decltype(found->second)()).first;
  }
  Tally& tally = with_event ? event_tallies_[events_.in_force()][column] : found->second[column];
  ++tally.verdicts[verdict];
  if (judgement.verdict == Verdict::refused) ++tally.errors[record.result];
  if (!with_event && instruction != nullptr) ++instruction->verdicts[column][verdict];
}

}  // namespace framestorm::stepping
