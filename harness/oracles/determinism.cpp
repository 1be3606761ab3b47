// The same input on the same halted victim gives the same trace.
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class DeterminismOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (!applies(view)) return;
    const FurtherWalk again = FurtherWalk::again(view);
    out->add(again);
    if (!view.may_read_itself()) return;
    out->add(again.aside(0));
    out->add(again.aside(1));
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!applies(view)) return;
    const FurtherWalk again = FurtherWalk::again(view);
    const WalkRecord* first = &view.record;
    const WalkRecord* second = further.make(again);
    if (second == nullptr) return;
    std::string difference = compare(view, *first, *second);
    if (!difference.empty() && view.may_read_itself()) {
      first = further.make(again.aside(0));
      second = first == nullptr ? nullptr : further.make(again.aside(1));
      if (second == nullptr) return;
      difference = compare(view, *first, *second);
    }
    if (!difference.empty()) out->broken("not-deterministic", difference);
  }

 private:
  static bool applies(const WalkView& view) {
    return view.record.end == WalkEnd::returned && view.record.result <= view.record.depth;
  }

  // How the second differs; empty when it does not.
  static std::string compare(const WalkView& view, const WalkRecord& first,
                             const WalkRecord& second) {
    if (first.result != second.result) {
      return "result " + std::to_string(first.result) + ", then " + std::to_string(second.result);
    }
    const bool same = same_frames(view.subject.walker->layout(), second.frames, first.frames,
                                  first.frame_count());
    return same ? "" : "same count, other frames";
  }
};

const RegisteredOracle<DeterminismOracle> kRegistered({.name = "determinism",
                                                       .order = 90,
                                                       .needs = {Need::further_walks, Need::trace},
                                                       .ask = &DeterminismOracle::ask});

}  // namespace
}  // namespace framestorm
