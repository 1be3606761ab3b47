// A thread outside Java is walked from its anchor: where no C frames are asked for, its context changes nothing,
// whatever it says, and may be null (profile.h). Of walkers that are told otherwise than by it whom they walk.
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class ContextOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (!applies(view)) return;
    const FurtherWalk with = FurtherWalk::apart(view);
    out->add(with);
    out->add(with.without_context());
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!applies(view)) return;
    const WalkRecord* const with = further.make(FurtherWalk::apart(view));
    if (with == nullptr) return;
    const WalkRecord* const without = further.make(FurtherWalk::apart(view).without_context());
    if (without == nullptr) return;
    const bool same =
        with->result == without->result && same_frames(view.subject.walker->layout(), with->frames,
                                                       without->frames, with->frame_count());
    if (same) return;
    out->broken("context-matters-outside-java", "result " + std::to_string(with->result) +
                                                    ", without the context " +
                                                    std::to_string(without->result));
  }

 private:
  static bool applies(const WalkView& view) {
    const WalkerTraits& walker = view.subject.walker->traits();
    return walker.is_added() && walker.masks && walker.finds_victim != FindsVictim::by_sp &&
           view.record.end == WalkEnd::returned && view.record.result <= view.record.depth &&
           view.subject.victim->is_java_thread && !view.walked_another_thread() &&
           !Victims::is_transient(view.subject.victim->scenario) &&
           view.subject.input->call.context == ContextArg::victim &&
           (view.record.options & (kIncludeCFrames | kIncludeNonJavaThreads)) == 0 &&
           stays_outside_java(view.record.thread_state);
  }
};

const RegisteredOracle<ContextOracle> kRegistered({.name = "context",
                                                   .order = 105,
                                                   .needs = {Need::further_walks, Need::trace},
                                                   .ask = &ContextOracle::ask});

}  // namespace
}  // namespace framestorm
