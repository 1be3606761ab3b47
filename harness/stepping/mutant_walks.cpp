// What a Stepper does where mutants of libjvm act (harness/jvm/libjvm_mutants.h).
#include <algorithm>
#include <functional>

#include "harness/stepping/stepper.h"

namespace framestorm::stepping {
namespace {

constexpr size_t kTriesOfWalk = 8;
// At the same instruction a mutant does mostly the same, and in the same code much.
constexpr Sample kTriedAt = {.first = 8, .one_in = 64};
constexpr size_t kSituations = 256;
// An event is made by other threads, and while it is in force, AsyncGetCallTrace may answer now so and now so.
constexpr size_t kConfirmations = 2;
constexpr size_t kConfirmationsInEvent = 6;

}  // namespace

// The walk of one walker at the instruction at which the thread stands.
class Stepper::MutantWalks final : public LibjvmMutants::Walks {
 public:
  // `record`, and whether it `was_right`: the walk with no mutant in force.
  MutantWalks(Stepper& stepper, size_t index, const ucontext_t& context, const WalkRecord& record,
              bool was_right)
      : stepper_(stepper), index_(index), context_(context), was_right_(was_right) {
    note_answer(record);
  }

  uint64_t answer() const override { return answer_; }

  size_t confirmations() const override {
    return stepper_.events_.in_force() == StepEvent::none ? kConfirmations : kConfirmationsInEvent;
  }
  void begin_try(size_t /*number*/) override {}
  void end_try() override {}

  // No walk leaves a stepped thread such that none may follow.
  bool goes_on() const override { return true; }

  std::vector<uint64_t> walk() override {
    const Walker& walker = *stepper_.walkers_[index_];
    const WalkRecord record = stepper_.make(index_, context_);
    note_answer(record);
    const Judgement judgement = stepper_.judge_trace(walker, record, record.frames);
    found_.clear();
    keys_.clear();
    // As without mutants (Stepper::keep_event, ask_oracles).
    const bool with_event = stepper_.events_.in_force() != StepEvent::none;
    const bool returned = record.end == WalkEnd::returned;
    const bool is_kept = judgement.verdict == Verdict::wrong ||
                         (!with_event && (judgement.verdict == Verdict::refused ||
                                          judgement.verdict == Verdict::too_short));
    const bool promised = stepper_.is_promised(walker, judgement, record);
    if (is_kept && (promised || was_right_)) {
      Finding finding = stepper_.finding_of(judgement, record);
      if (!promised) finding.oracle = kGateOracle;
      take(judgement.verdict, std::move(finding));
    }
    if (with_event && returned && !record.in_collection) return keys_;
    stepper_.wait_for_methods();
    stepper_.oracles_.judge(
        {record, stepper_.subject().of(walker, stepper_.limits_.depth, record.options)},
        stepper_.oracles_.offered(), &stepper_.violations_);
    for (Finding& finding : stepper_.violations_.take()) {
      take(returned ? Verdict::right : Verdict::failed, std::move(finding));
    }
    return keys_;
  }

  void killed(size_t number, uint64_t key) override {
    const auto found = static_cast<size_t>(std::ranges::find(keys_, key) - keys_.begin());
    auto& [verdict, finding] = found_[found];
    StepFinding& kept = stepper_.findings_["mutant " + std::to_string(number)];
    kept.event = stepper_.events_.in_force();
    finding.input = stepper_.input_of(*stepper_.walkers_[index_]);
    if (kept.event != StepEvent::none) finding.input.halt = stepper_.event_point_;
    finding.mutant = number;
    kept.count = 1;
    kept.scenarios[std::string(name_of(stepper_.scenario_))] = 1;
    stepper_.keep_first(&kept, verdict, std::move(finding));
  }

 private:
  void note_answer(const WalkRecord& record) {
    answer_ = digest_of_answer(record, stepper_.walkers_[index_]->layout());
  }
  void take(Verdict verdict, Finding finding) {
    keys_.push_back(
        std::hash<std::string>()(stepper_.key_of(*stepper_.walkers_[index_], verdict, finding)));
    found_.emplace_back(verdict, std::move(finding));
  }

  Stepper& stepper_;
  const size_t index_;
  const ucontext_t& context_;
  const bool was_right_;
  uint64_t answer_ = 0;
  // By the last walk.
  std::vector<std::pair<Verdict, Finding>> found_;
  std::vector<uint64_t> keys_;
};

void Stepper::try_mutants(size_t index, const ucontext_t& context, const WalkRecord& record,
                          const Instruction* instruction, bool was_right) {
  if (nested_ != nullptr) return;
  if (events_.in_force() == StepEvent::none && !is_in(kTriedAt, instruction)) return;
  MutantWalks walks(*this, index, context, record, was_right);
  const Blob* const blob = truth_.blob();
  const size_t situation =
      blob == nullptr ? 0 : std::hash<std::string>()(blob->entry.name) % kSituations;
  mutants_->try_acting(walks, kTriesOfWalk, situation);
  if (mutants_->spoiled()) give_up();
}

}  // namespace framestorm::stepping
