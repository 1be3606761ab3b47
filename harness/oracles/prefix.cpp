// Oracle 4, across depths: the trace of depth k is the first k frames of the trace of depth n > k.
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class PrefixOracle final : public Oracle {
 public:
  std::string_view name() const override { return "prefix"; }
  bool costly() const override { return true; }

  void check(const WalkView& view, Rewalk& rewalk, Violations* out) override {
    if (view.frame_count() < 2 || view.result > view.depth) return;
    const int32_t depth = view.result / 2;
    if (!rewalk.walk(depth, Rewalk::Place::same, &shorter_)) return;
    int32_t whole = view.result;
    bool right = is_prefix(view, depth, view.frames);
    if (!right && view.may_read_itself()) {
      if (!rewalk.walk(view.depth, Rewalk::Place::aside, &whole_)) return;
      whole = whole_.result;
      if (whole < depth || whole > view.depth) return;  // nothing that depth would cut
      if (!rewalk.walk(depth, Rewalk::Place::aside, &shorter_)) return;
      right = is_prefix(view, depth, whole_.frames.data());
    }
    if (right) return;
    const std::string depths[] = {std::to_string(depth), std::to_string(view.depth)};
    if (shorter_.result != depth) {
      out->add(FindingKind::contract, "depth-changes-result",
               "depth " + depths[1] + " gives " + std::to_string(whole) + ", depth " + depths[0] +
                   " gives " + std::to_string(shorter_.result));
    } else {
      out->add(FindingKind::contract, "depth-changes-frames",
               "the frames of depth " + depths[0] + " are not the first of depth " + depths[1]);
    }
  }

 private:
  // Whether shorter_ is what `depth` leaves of `frames`, which are at least as many.
  bool is_prefix(const WalkView& view, int32_t depth, const std::byte* frames) const {
    return shorter_.result == depth && same_frames(view.walker->layout(), shorter_.frames.data(),
                                                   frames, static_cast<size_t>(depth));
  }

  Answer whole_;
  Answer shorter_;
};

}  // namespace

std::unique_ptr<Oracle> make_prefix_oracle() { return std::make_unique<PrefixOracle>(); }

}  // namespace framestorm
