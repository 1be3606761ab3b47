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
    int32_t result = 0;
    if (!rewalk.walk(view.depth, &result, &frames_)) {
      out->add(FindingKind::contract, "not-deterministic",
               "the walk returned once and did not the second time");
      return;
    }
    if (result != view.result) {
      out->add(FindingKind::contract, "not-deterministic",
               "result " + std::to_string(view.result) + ", then " + std::to_string(result));
    } else if (!same_frames(view.walker->layout(), frames_.data(), view.frames,
                            view.frame_count())) {
      out->add(FindingKind::contract, "not-deterministic", "same count, other frames");
    }
  }

 private:
  std::vector<std::byte> frames_;
};

}  // namespace

std::unique_ptr<Oracle> make_determinism_oracle() { return std::make_unique<DeterminismOracle>(); }

}  // namespace framestorm
