// A trace with C frames has the Java frames of the one without, in order, and bits of the options
// that mean nothing change nothing.
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class OptionsOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (!applies(view)) return;
    const Walks walks(view);
    out->add(walks.plain);
    out->add(walks.with_unknown_bits);
    out->add(walks.with_c_frames_toggled);
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!applies(view)) return;
    const Walks walks(view);
    const WalkRecord* const plain = further.make(walks.plain);
    if (plain == nullptr) return;
    const WalkRecord* const unknown = further.make(walks.with_unknown_bits);
    if (unknown == nullptr) return;
    if (plain->result != unknown->result ||
        !same_frames(view.subject.walker->layout(), plain->frames, unknown->frames,
                     plain->frame_count())) {
      out->broken("unknown-option-matters", "result " + std::to_string(plain->result) +
                                                ", with other unknown bits " +
                                                std::to_string(unknown->result));
    }
    const WalkRecord* const toggled = further.make(walks.with_c_frames_toggled);
    if (toggled == nullptr) return;
    const bool has_c = (view.record.options & kIncludeCFrames) != 0;
    const std::string difference =
        compare(view, has_c ? *plain : *toggled, has_c ? *toggled : *plain);
    if (!difference.empty()) {
      out->broken("c-frames-change-java-frames", difference);
    }
  }

 private:
  struct Walks {
    explicit Walks(const WalkView& view) {
      const WalkerId own = view.record.walker;
      const uint32_t options = view.record.options;
      const auto place =
          view.may_read_itself() ? FurtherWalk::Place::aside : FurtherWalk::Place::same;
      plain = FurtherWalk::as(view, own, options, place);
      with_unknown_bits =
          FurtherWalk::as(view, own, options ^ ~(traits_of(own).options | kWalkSameThread), place);
      with_c_frames_toggled = FurtherWalk::as(view, own, options ^ kIncludeCFrames, place);
    }
    FurtherWalk plain, with_unknown_bits, with_c_frames_toggled;
  };

  static bool applies(const WalkView& view) {
    return traits_of(view.record.walker).options != 0 && view.record.end == WalkEnd::returned &&
           view.record.result <= view.record.depth;
  }

  // Empty when `with` has the Java frames of `without`, as far as the depth let either go.
  std::string compare(const WalkView& view, const WalkRecord& with, const WalkRecord& without) {
    if (without.result <= 0) return {};
    if (with.result <= 0) {
      return std::to_string(without.result) + " frames without C frames, with them " +
             std::to_string(with.result) + " (" +
             std::string(view.subject.walker->error_name(with.result)) + ")";
    }
    java_frames(view, with, &with_);
    java_frames(view, without, &without_);
    const size_t common = std::min(with_.size(), without_.size());
    for (size_t i = 0; i < common; ++i) {
      if (with_[i] != without_[i]) return "Java frame " + std::to_string(i) + " differs";
    }
    const bool with_whole = with.result < view.record.depth;
    const bool without_whole = without.result < view.record.depth;
    if ((with_whole && with_.size() < without_.size()) ||
        (without_whole && without_.size() < with_.size())) {
      return std::to_string(with_.size()) + " Java frames with C frames, " +
             std::to_string(without_.size()) + " without";
    }
    return {};
  }

  static void java_frames(const WalkView& view, const WalkRecord& record, std::vector<Frame>* out) {
    out->clear();
    for (size_t i = 0; i < record.frame_count(); ++i) {
      const Frame frame = read_frame(view.subject.walker->layout(), record.frames, i);
      if (!is_machine(frame.type)) out->push_back(frame);
    }
  }

  std::vector<Frame> with_;
  std::vector<Frame> without_;
};

const RegisteredOracle<OptionsOracle> kRegistered({.name = "options",
                                                   .order = 100,
                                                   .needs = {Need::further_walks, Need::trace},
                                                   .ask = &OptionsOracle::ask});

}  // namespace
}  // namespace framestorm
