// The trace of depth k is the first k frames of the trace of depth n > k. Where an added walker says that
// nothing can be walked, depth 1 gives nothing, either.
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class PrefixOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (is_refused(view)) {
      out->add(FurtherWalk::apart(view).with_depth(1));
      out->add(FurtherWalk::apart(view));
    }
    if (!applies(view)) return;
    const FurtherWalk whole = FurtherWalk::again(view);
    const FurtherWalk shorter = whole.with_depth(view.record.result / 2);
    out->add(shorter);
    if (!view.may_read_itself()) return;
    out->add(whole.aside());
    out->add(shorter.aside());
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (is_refused(view)) check_refusal(view, further, out);
    if (!applies(view)) return;
    const int32_t depth = view.record.result / 2;
    const FurtherWalk again = FurtherWalk::again(view);
    const WalkRecord* whole = &view.record;
    const WalkRecord* shorter = further.make(again.with_depth(depth));
    if (shorter == nullptr) return;
    bool right = is_prefix(view, *shorter, *whole);
    if (!right && view.may_read_itself()) {
      whole = further.make(again.aside());
      if (whole == nullptr) return;
      if (whole->result < depth || whole->result > view.record.depth) {
        return;  // nothing that depth would cut
      }
      shorter = further.make(again.with_depth(depth).aside());
      if (shorter == nullptr) return;
      right = is_prefix(view, *shorter, *whole);
    }
    if (right) return;
    const std::string depths[] = {std::to_string(depth), std::to_string(view.record.depth)};
    if (shorter->result != depth) {
      out->broken("depth-changes-result",
                  "depth " + depths[1] + " gives " + std::to_string(whole->result) + ", depth " +
                      depths[0] + " gives " + std::to_string(shorter->result));
    } else {
      out->broken("depth-changes-frames",
                  "the frames of depth " + depths[0] + " are not the first of depth " + depths[1]);
    }
  }

 private:
  static bool is_refused(const WalkView& view) {
    const WalkerTraits& walker = view.subject.walker->traits();
    const WalkerError* const error =
        view.record.result <= 0 ? walker.find_error(view.record.result) : nullptr;
    return walker.is_added() && view.record.end == WalkEnd::returned && view.record.depth > 1 &&
           error != nullptr && error->says_not_walkable();
  }

  static void check_refusal(const WalkView& view, Further& further, Violations* out) {
    const WalkRecord* const one = further.make(FurtherWalk::apart(view).with_depth(1));
    if (one == nullptr || one->result <= 0) return;
    if (view.may_read_itself()) {
      const WalkRecord* const again = further.make(FurtherWalk::apart(view));
      if (again == nullptr || again->result > 0) return;
    }
    out->broken("depth-changes-result",
                "depth " + std::to_string(view.record.depth) + " gives " +
                    std::string(view.subject.walker->error_name(view.record.result)) +
                    ", depth 1 a frame");
  }

  static bool applies(const WalkView& view) {
    return view.record.frame_count() >= 2 && view.record.result <= view.record.depth;
  }

  // Whether `shorter` is what its depth leaves of `whole`, which has at least as many frames.
  static bool is_prefix(const WalkView& view, const WalkRecord& shorter, const WalkRecord& whole) {
    return shorter.result == shorter.depth &&
           same_frames(view.subject.walker->layout(), shorter.frames, whole.frames,
                       shorter.frame_count());
  }
};

const RegisteredOracle<PrefixOracle> kRegistered({.name = "prefix",
                                                  .order = 80,
                                                  .needs = {Need::further_walks, Need::trace},
                                                  .ask = &PrefixOracle::ask});

}  // namespace
}  // namespace framestorm
