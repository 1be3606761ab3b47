// Oracle 5: the same input on the same halted victim gives the same trace.
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class DeterminismOracle final : public Oracle {
 public:
  std::string_view name() const override { return "determinism"; }
  bool costly() const override { return true; }

  void check(const WalkView& view, Rewalk& rewalk, Violations* out) override {
    if (view.end != WalkEnd::returned || view.result > view.depth) return;
    if (!rewalk.walk(view.depth, Rewalk::Place::same, &second_)) return;
    std::string difference = compare(view, view.result, view.frames);
    if (!difference.empty() && view.may_read_itself()) {
      if (!rewalk.walk(view.depth, Rewalk::Place::aside, &first_)) return;
      if (!rewalk.walk(view.depth, Rewalk::Place::aside, &second_)) return;
      difference = compare(view, first_.result, first_.frames.data());
    }
    if (!difference.empty()) out->add(FindingKind::contract, "not-deterministic", difference);
  }

 private:
  // How second_ differs from what is given; empty when it does not.
  std::string compare(const WalkView& view, int32_t result, const std::byte* frames) const {
    if (result != second_.result) {
      return "result " + std::to_string(result) + ", then " + std::to_string(second_.result);
    }
    const auto count = static_cast<size_t>(std::max(result, 0));
    const bool same = same_frames(view.walker->layout(), second_.frames.data(), frames, count);
    return same ? "" : "same count, other frames";
  }

  Answer first_;
  Answer second_;
};

}  // namespace

std::unique_ptr<Oracle> make_determinism_oracle() { return std::make_unique<DeterminismOracle>(); }

}  // namespace framestorm
