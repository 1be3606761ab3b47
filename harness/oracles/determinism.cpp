// The same input on the same halted victim gives the same trace, whatever else has left its words on
// the walker's stack.
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

// The other stale words are 0. As an enumerator these are the third, as a bool true, and as a
// pointer they lead to nothing that is mapped.
constexpr uint32_t kOtherStaleWords = 2;

class DeterminismOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (!applies(view)) return;
    const FurtherWalk again = FurtherWalk::again(view);
    if (!view.record.stale_words) {
      out->add(again);
      return;
    }
    out->add(again.over(kOtherStaleWords));
    const FurtherWalk base = FurtherWalk::apart(view);
    for (const FurtherWalk& walk : {base, base.over(kOtherStaleWords)}) {
      if (view.may_read_itself()) out->add(walk);
      out->add(walk.once_more());
    }
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!applies(view)) return;
    const bool has_stale_words = view.record.stale_words.has_value();
    const FurtherWalk again = FurtherWalk::again(view);
    const WalkRecord* const second =
        further.make(has_stale_words ? again.over(kOtherStaleWords) : again);
    if (second == nullptr) return;
    const std::string difference = compare(view, view.record, *second);
    if (difference.empty()) return;
    if (has_stale_words) {
      find_cause(view, *second, further, out);
    } else {
      out->broken("not-deterministic", difference);
    }
  }

 private:
  static bool applies(const WalkView& view) {
    return view.record.end == WalkEnd::returned && view.record.result <= view.record.depth;
  }

  // The second walk over other stale words is not like the first one: by these, or by chance.
  static void find_cause(const WalkView& view, const WalkRecord& second, Further& further,
                         Violations* out) {
    const bool aside = view.may_read_itself();
    const FurtherWalk base = FurtherWalk::apart(view);
    const FurtherWalk over_other = base.over(kOtherStaleWords);
    const WalkRecord* const first = aside ? further.make(base) : &view.record;
    const WalkRecord* const other = aside ? further.make(over_other) : &second;
    // In this order, so that a walker that alternates is not taken for one that reads them.
    const WalkRecord* const other_again = further.make(over_other.once_more());
    const WalkRecord* const first_again = further.make(base.once_more());
    if (first == nullptr || other == nullptr || first_again == nullptr || other_again == nullptr) {
      return;
    }
    std::string by_chance = compare(view, *first, *first_again);
    if (by_chance.empty()) by_chance = compare(view, *other, *other_again);
    const std::string difference = compare(view, *first, *other);
    if (!by_chance.empty()) {
      out->broken("not-deterministic", by_chance);
    } else if (!difference.empty()) {
      out->broken("reads-stale-stack", difference + " over other stale words of its own stack");
    }
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
