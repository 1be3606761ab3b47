// Oracle 6: an unmutated walk shows what the scenario is known to be executing.
#include "harness/oracles/oracle.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

class TruthOracle final : public Oracle {
 public:
  std::string_view name() const override { return "truth"; }

  void check(const WalkView& view, Rewalk&, Violations* out) override {
    if (!view.unmutated || view.frame_count() == 0 || view.result > view.depth) return;
    if (view.walker->layout().method < 0) return;
    const ScenarioInfo& scenario = scenario_info(view.input->scenario);
    if (!scenario.java) return;
    // One halt point gives one trace, by oracle 5: look at it once.
    if (view.victim->slot == checked_slot_ && checked_parks_ == view.victim->slot->parks.load() &&
        checked_result_ == view.result && checked_walker_ == view.walker) {
      return;
    }
    names_.clear();
    // Walkers of machine frames have other frames than Java's, without a method.
    const bool java_only = view.walker->layout().pc < 0;
    for (size_t i = 0; i < view.frame_count(); ++i) {
      const Frame frame = read_frame(view.walker->layout(), view.frames, i);
      if (frame.type == FrameType::cpp) continue;
      if (frame.type == FrameType::none && frame.method == nullptr && !java_only) continue;
      const MethodInfo* info = frame.method == nullptr ? nullptr : view.methods->find(frame.method);
      names_.push_back(info == nullptr ? "?" : info->name);
    }
    if (names_.empty()) return;
    std::string why;
    // Three registers do not say that a frame is being built or taken down (agreement.cpp).
    const bool lost = view.walker->id() == WalkerId::asgst_frame && view.stopped != nullptr;
    const bool truncated = view.result == view.depth || lost;
    if (matches(names_, scenario, view.walker->id(), &why, truncated)) {
      checked_slot_ = view.victim->slot;
      checked_parks_ = view.victim->slot->parks.load();
      checked_result_ = view.result;
      checked_walker_ = view.walker;
    } else {
      out->add(FindingKind::contract, "wrong-frames", why);
    }
  }

 private:
  std::vector<std::string> names_;
  const ThreadSlot* checked_slot_ = nullptr;
  uint32_t checked_parks_ = 0;
  int32_t checked_result_ = 0;
  const Walker* checked_walker_ = nullptr;
};

}  // namespace

std::unique_ptr<Oracle> make_truth_oracle() { return std::make_unique<TruthOracle>(); }

}  // namespace framestorm
