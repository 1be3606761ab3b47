// Oracle 4, within one walk: what an adapter saw its API do wrong from one call to the next
// (walkers/iterator_sequence.h).
#include <algorithm>
#include <span>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class CallsOracle final : public Oracle {
 public:
  std::string_view name() const override { return "calls"; }

  void check(const WalkView& view, Rewalk& rewalk, Violations* out) override {
    const WalkFacts* facts = view.walker->facts();
    if (view.end != WalkEnd::returned || facts == nullptr || facts->complaint_count == 0) return;
    bool aside = false;
    for (const Complaint& complaint : complaints(*facts)) {
      if (complaint.scope == ComplaintScope::real_context && view.mutated) continue;
      if (complaint.scope == ComplaintScope::same_frames && view.may_read_itself()) {
        aside = true;
      } else {
        out->add(FindingKind::contract, complaint.clause, complaint.detail.data());
      }
    }
    // The rest counts where a walk cannot read its own frames.
    if (!aside || !rewalk.walk(view.depth, Rewalk::Place::aside, &answer_)) return;
    for (const Complaint& complaint : complaints(*facts)) {
      if (complaint.scope == ComplaintScope::same_frames) {
        out->add(FindingKind::contract, complaint.clause, complaint.detail.data());
      }
    }
  }

 private:
  static std::span<const Complaint> complaints(const WalkFacts& facts) {
    return std::span(facts.complaints)
        .first(std::min(facts.complaint_count, facts.complaints.size()));
  }

  Answer answer_;
};

}  // namespace

std::unique_ptr<Oracle> make_calls_oracle() { return std::make_unique<CallsOracle>(); }

}  // namespace framestorm
