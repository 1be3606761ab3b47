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
    const int32_t shorter = view.result / 2;
    int32_t result = 0;
    if (!rewalk.walk(shorter, &result, &frames_)) return;  // a fault there is a finding by itself
    if (result != shorter) {
      out->add(FindingKind::contract, "depth-changes-result",
               "depth " + std::to_string(view.depth) + " gives " + std::to_string(view.result) +
                   ", depth " + std::to_string(shorter) + " gives " + std::to_string(result));
    } else if (!same_frames(view.walker->layout(), frames_.data(), view.frames,
                            static_cast<size_t>(shorter))) {
      out->add(FindingKind::contract, "depth-changes-frames",
               "the frames of depth " + std::to_string(shorter) + " are not the first of depth " +
                   std::to_string(view.depth));
    }
  }

 private:
  std::vector<std::byte> frames_;
};

}  // namespace

std::unique_ptr<Oracle> make_prefix_oracle() { return std::make_unique<PrefixOracle>(); }

}  // namespace framestorm
