// An unmutated walk shows what the scenario is known to be executing, and its own methods call each
// other where they have a call. A walker that trusts what it meets refuses no thread in Java, at no
// instruction. One that does not (WalkerTraits::ends_where_it_distrusts_a_frame) refuses none in Java code
// whose frame stands. Neither refuses one outside Java with an anchor that says where. The last two hold where
// the scenario promises all of AsyncGetCallTrace's (ScenarioInfo::asgct_percent). A whole trace is not said
// to be cut, and one without the frames in the heap is. A native method that the walker does not name, in the
// interpreter, is taken for whichever one is right there; whether a native method's frame is right there,
// the other walkers say (agreement.cpp).
#include <algorithm>
#include <array>

#include "harness/input/thread_state.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

class TruthOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    if (!view.subject.unmutated || view.record.result > view.record.depth) return;
    if (view.subject.walker->layout().method < 0) return;
    const ScenarioInfo& scenario = scenario_info(view.subject.input->scenario);
    if (!scenario.java) return;
    if (is_refused_without_need(view, scenario)) {
      const bool between = view.record.thread_state == kThreadInJava && !view.frame_stands();
      out->broken(between ? "refuses-between-frames" : "refuses-a-standing-frame",
                  std::string(view.place()) + ": " +
                      std::string(view.subject.walker->error_name(view.record.result)));
    }
    if (view.record.frame_count() == 0) return;
    const ThreadSlot* const slot = view.subject.victim->slot;
    // A walker gives one trace of one halt point: look at it once.
    const std::string_view trace(reinterpret_cast<const char*>(view.record.frames),
                                 view.record.frame_count() * view.subject.walker->layout().stride);
    Checked& checked = checked_[static_cast<size_t>(view.record.walker)];
    if (slot == checked.slot && checked.parks == slot->parks.load() && trace == checked.trace &&
        checked.cut == view.record.cut() && checked.walker == view.subject.walker) {
      return;
    }
    names_.clear();
    // Walkers of machine frames have other frames than Java's, without a method.
    const bool java_only = view.subject.walker->layout().pc < 0;
    for (size_t i = 0; i < view.record.frame_count(); ++i) {
      const Frame frame = view.frame(i);
      if (is_machine(frame.type)) continue;
      if (frame.type == FrameType::none && frame.method == nullptr && !java_only) continue;
      names_.push_back(method_name(frame, *view.subject.methods));
    }
    const WalkerTraits& walker = view.subject.walker->traits();
    if (names_.empty() && !(walker.is_declared() && walker.gives_java_frames)) return;
    std::string why;
    // Three registers do not say that a frame is being built or taken down (agreement.cpp).
    const bool lost =
        (walker.needs_registers_only || walker.says_when_cut) && view.record.stopped() != nullptr;
    const bool truncated = view.record.result == view.record.depth || lost || view.ends_as_asked();
    if (!matches(names_, scenario, walker, &why, truncated)) {
      out->broken(kWrongFrames, std::string(view.place()) + ": " + why);
    } else if (!calls_where_it_can(view, &why)) {
      out->broken("caller-not-at-a-call", why);
    } else if (walker.is_added() && !truncated && scenario.thawed_trace.empty() &&
               view.record.cut() != nullptr) {
      out->broken("says-cut-where-whole", std::string(view.record.cut()));
    } else if (leaves_out_the_heap(view) && !truncated && view.record.cut() == nullptr) {
      out->broken("leaves-out-and-does-not-say",
                  "the frames between " + names_.front() + " and its carrier's are in the heap");
    } else {
      checked = {.slot = slot,
                 .parks = slot->parks.load(),
                 .trace = std::string(trace),
                 .cut = view.record.cut(),
                 .walker = view.subject.walker};
    }
  }

 private:
  static bool is_refused_without_need(const WalkView& view, const ScenarioInfo& scenario) {
    const WalkerTraits& walker = view.subject.walker->traits();
    if (view.record.end != WalkEnd::returned || view.record.result > 0 || view.record.depth <= 0 ||
        walker.origin == WalkerOrigin::shared_object || walker.chooses_its_threads ||
        walker.needs_registers_only || walker.contained_error == view.record.result) {
      return false;
    }
    if (view.record.in_collection) return false;
    const bool in_java = view.record.thread_state == kThreadInJava;
    if (in_java && !walker.ends_where_it_distrusts_a_frame) return is_walkable_in_java(view);
    if (scenario.asgct_percent != 100) return false;
    return in_java ? view.frame_stands() : anchor_stands(view);
  }

  // As stepping has it (Stepper::is_promised).
  static bool is_walkable_in_java(const WalkView& view) {
    const WalkerError* const error = view.subject.walker->traits().find_error(view.record.result);
    const CodeEntry* const code = view.subject.jvm->code_map().find(view.subject.victim->pc);
    const bool in_vm = code == nullptr || is_deoptimisation(code->name);
    return error == nullptr || !error->not_safe || !in_vm;
  }

  // Not all of a virtual thread's frames are there, of which Victim.run is one of the outermost, by a walker
  // that sees them, or can say so.
  bool leaves_out_the_heap(const WalkView& view) const {
    const WalkerTraits& walker = view.subject.walker->traits();
    const auto is_there = [&](std::string_view name) {
      return std::ranges::find(names_, name) != names_.end();
    };
    return (walker.says_frozen || walker.sees_frozen_frames) && !names_.empty() &&
           names_.front().starts_with("framestorm/") && !is_there("framestorm/Victim.run") &&
           !scenario_info(view.subject.input->scenario).thawed_trace.empty();
  }

  // Not while the thread changes its state.
  static bool anchor_stands(const WalkView& view) {
    const Jvm& jvm = *view.subject.jvm;
    if (view.subject.walker->traits().needs_pc_of_anchor &&
        view.subject.victim->is_anchor_without_pc(jvm.layout())) {
      return false;
    }
    return stays_outside_java(view.record.thread_state) &&
           view.subject.victim->last_java_sp(jvm.layout()) != 0 &&
           jvm.code_map().find(view.record.last_java_pc) != nullptr;
  }

  // Of a method of the scenario's that another one of them called. What the VM calls, it does from
  // any instruction: an exception's constructor, a class loader, <clinit>.
  static bool calls_where_it_can(const WalkView& view, std::string* why) {
    const MethodInfo* callee = nullptr;
    for (size_t i = 0; i < view.record.frame_count(); ++i) {
      const Frame frame = view.frame(i);
      const MethodInfo* const info = view.method_of(frame);
      if (info != nullptr && callee != nullptr && is_own(*info) && is_own(*callee) &&
          !callee->name.ends_with(".<clinit>") && info->last_bci >= 0 && frame.bci >= 0 &&
          !std::ranges::binary_search(info->invokes, frame.bci)) {
        *why = "frame " + std::to_string(i) + " " + info->name + " has bci " +
               std::to_string(frame.bci) + ", where it calls nothing";
        return false;
      }
      callee = is_machine(frame.type) ? nullptr : info;
    }
    return true;
  }
  static bool is_own(const MethodInfo& method) { return method.name.starts_with("framestorm/"); }

  // A trace that was right.
  struct Checked {
    const ThreadSlot* slot = nullptr;
    uint32_t parks = 0;
    std::string trace;
    const char* cut = nullptr;  // static storage of the walker's
    const Walker* walker = nullptr;
  };

  std::vector<std::string> names_;
  std::array<Checked, static_cast<size_t>(WalkerId::count)> checked_;
};

const RegisteredOracle<TruthOracle> kRegistered({.name = "truth",
                                                 .order = 110,
                                                 .needs = {Need::ground_truth, Need::trace}});

}  // namespace
}  // namespace framestorm
