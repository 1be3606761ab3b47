// Oracle 4, across options: a trace with C frames has the Java frames of the one without, in order,
// and bits that mean nothing change nothing.
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class OptionsOracle final : public Oracle {
 public:
  std::string_view name() const override { return "options"; }
  bool costly() const override { return true; }

  void check(const WalkView& view, Rewalk& rewalk, Violations* out) override {
    const uint32_t known = traits_of(view.walker->id()).options;
    if (known == 0 || view.end != WalkEnd::returned || view.result > view.depth) return;
    const auto place = view.may_read_itself() ? Rewalk::Place::aside : Rewalk::Place::same;
    Input variant = *view.input;
    variant.iterator_calls.clear();
    if (!rewalk.walk_as(variant, place, &plain_)) return;
    variant.call.options = view.input->call.options ^ ~(known | kWalkSameThread);
    if (!rewalk.walk_as(variant, place, &other_)) return;
    if (plain_.result != other_.result ||
        !same_frames(view.walker->layout(), plain_.frames.data(), other_.frames.data(),
                     static_cast<size_t>(std::max(plain_.result, 0)))) {
      out->add(FindingKind::contract, "unknown-option-matters",
               "result " + std::to_string(plain_.result) + ", with other unknown bits " +
                   std::to_string(other_.result));
    }
    variant.call.options = view.input->call.options ^ kIncludeCFrames;
    if (!rewalk.walk_as(variant, place, &other_)) return;
    const bool has_c = (view.input->call.options & kIncludeCFrames) != 0;
    const std::string difference = compare(view, has_c ? plain_ : other_, has_c ? other_ : plain_);
    if (!difference.empty()) {
      out->add(FindingKind::contract, "c-frames-change-java-frames", difference);
    }
  }

 private:
  // Empty when `with` has the Java frames of `without`, as far as the depth let either go.
  std::string compare(const WalkView& view, const Answer& with, const Answer& without) {
    if (without.result <= 0) return {};
    if (with.result <= 0) {
      return std::to_string(without.result) + " frames without C frames, with them " +
             std::to_string(with.result) + " (" +
             std::string(view.walker->error_name(with.result)) + ")";
    }
    java_frames(view, with, &with_);
    java_frames(view, without, &without_);
    const size_t common = std::min(with_.size(), without_.size());
    for (size_t i = 0; i < common; ++i) {
      if (with_[i] != without_[i]) return "Java frame " + std::to_string(i) + " differs";
    }
    const bool with_whole = with.result < view.depth;
    const bool without_whole = without.result < view.depth;
    if ((with_whole && with_.size() < without_.size()) ||
        (without_whole && without_.size() < with_.size())) {
      return std::to_string(with_.size()) + " Java frames with C frames, " +
             std::to_string(without_.size()) + " without";
    }
    return {};
  }

  static void java_frames(const WalkView& view, const Answer& answer, std::vector<Frame>* out) {
    out->clear();
    const FrameLayout& layout = view.walker->layout();
    for (size_t i = 0; i < answer.frames.size() / layout.stride; ++i) {
      const Frame frame = read_frame(layout, answer.frames.data(), i);
      if (frame.type != FrameType::cpp) out->push_back(frame);
    }
  }

  Answer plain_;
  Answer other_;
  std::vector<Frame> with_;
  std::vector<Frame> without_;
};

}  // namespace

std::unique_ptr<Oracle> make_options_oracle() { return std::make_unique<OptionsOracle>(); }

}  // namespace framestorm
