// What, within one walk, an adapter saw its API do wrong from one call to the next
// (walkers/iterator_sequence.h).
#include <algorithm>
#include <span>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class CallsOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (view.may_read_itself()) out->add(FurtherWalk::again(view).aside());
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    const WalkFacts* facts = view.record.facts_if_any();
    if (view.record.end != WalkEnd::returned || facts == nullptr || facts->complaint_count == 0)
      return;
    bool aside = false;
    for (const Complaint& complaint : complaints(*facts)) {
      if (complaint.scope == ComplaintScope::real_context && view.subject.mutated) continue;
      if (complaint.scope == ComplaintScope::real_poll && !may_poll(view)) continue;
      if (complaint.scope == ComplaintScope::same_frames && view.may_read_itself()) {
        aside = true;
      } else {
        out->broken(complaint.clause, complaint.detail.data());
      }
    }
    // The rest counts where a walk cannot read its own frames.
    const WalkRecord* const again =
        aside ? further.make(FurtherWalk::again(view).aside()) : nullptr;
    if (again == nullptr) return;
    for (const Complaint& complaint : complaints(again->facts)) {
      if (complaint.scope == ComplaintScope::same_frames) {
        out->broken(complaint.clause, complaint.detail.data());
      }
    }
  }

 private:
  static bool may_poll(const WalkView& view) {
    if (view.subject.mutated) return false;
    const CodeEntry* const code = view.subject.jvm->code_map().find(view.subject.victim->pc);
    return code == nullptr || code->kind != CodeKind::codelet || !may_be_partly_there(*code);
  }

  static std::span<const Complaint> complaints(const WalkFacts& facts) {
    return std::span(facts.complaints)
        .first(std::min(facts.complaint_count, facts.complaints.size()));
  }
};

const RegisteredOracle<CallsOracle> kRegistered(
    {.name = "calls", .order = 70, .needs = {Need::trace}, .ask = &CallsOracle::ask});

}  // namespace
}  // namespace framestorm
