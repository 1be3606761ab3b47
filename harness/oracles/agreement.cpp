// Oracle 6 across walkers: of an unmutated victim all walkers give the same Java frames, method by
// method and bci by bci, each wherever it is defined. (JVMTI GetStackTrace cannot be asked of a
// halted world: reference.h.)
//
// What may differ, and why:
//
//   bci of a native method      each API has its own word for it: -3, -1, 65535
//   the innermost bci           AsyncGetCallTrace takes an interpreted frame's bytecode pointer
//                               from where the last call left it, not from the register, and below
//                               a safepoint's stub the next debug information, not that of the
//                               poll; three registers (asgst-frame) do not say whether pc is a
//                               return address, and have no bytecode pointer
//   a bci that is unknown (-1)  a pc between two places with debug information: one walker looks
//                               for the next, another does not guess
//   frames of C and C++         only some APIs have them
//   the rest of a trace         beyond the depth of either walk
//   innermost frames            that AsyncGetCallTrace loses at the entry of C functions that Java
//                               calls without an anchor (corpus/crashes, leaf-call-entry- and
//                               vm-call-entry-)
//   and what kExemptions says
#include <algorithm>
#include <initializer_list>

#include "harness/input/walker_traits.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

constexpr uint32_t kThreadInJava = 8;  // JavaThreadState, utilities/globalDefinitions.hpp

struct Exemption {
  WalkerId walker;
  // `result`, `stopped`: of that walker's walk.
  bool (*applies)(const WalkView& view, int32_t result, const char* stopped);
  std::string_view reason;
};

bool in(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

constexpr Exemption kExemptions[] = {
    {WalkerId::asgct,
     [](const WalkView& view, int32_t, const char*) {
       return !scenario_info(view.input->scenario).asgct_trace.empty();
     },
     "AsyncGetCallTrace stops or skips there by design (ScenarioInfo::asgct_trace)"},
    {WalkerId::asgct, [](const WalkView&, int32_t result, const char*) { return result <= 0; },
     "AsyncGetCallTrace refuses stubs without a frame size, prologues and VM calls without a last "
     "Java pc by design (ScenarioInfo::asgct_percent)"},
    {WalkerId::asgst_frame,
     [](const WalkView& view, int32_t, const char*) { return view.thread_state != kThreadInJava; },
     "three registers of C code say nothing of where Java begins: the context and the thread do"},
    {WalkerId::asgst_frame,
     [](const WalkView&, int32_t result, const char* stopped) {
       return result <= 0 || stopped != nullptr;
     },
     "nor that a frame is being built or taken down, as in a stub's first instructions"},
};

// Errors that say when a thread may not be walked, which the APIs see differently:
// AsyncGetCallTrace walks at a safepoint, the others only when they are told to. And a finding that
// there is already.
bool is_refusal(std::string_view error) {
  return in(error, {"GC_active", "unsafe_state", "thread_exit", "deopt", "thread_not_Java",
                    "contained_fault"});
}

bool is_exempt(WalkerId walker, const WalkView& view, int32_t result, const char* stopped) {
  return std::ranges::any_of(kExemptions, [&](const Exemption& exemption) {
    return exemption.walker == walker && exemption.applies(view, result, stopped);
  });
}

constexpr WalkerId kCompared[] = {
    WalkerId::asgct,  WalkerId::asgst,          WalkerId::asgst_env,  WalkerId::asgst_thread,
    WalkerId::asgct2, WalkerId::asgst_iterator, WalkerId::asgst_frame};

// A Java frame as every walker sees it.
struct JavaFrame {
  jmethodID method;
  int32_t bci;  // kNoBci also for native methods
};

class AgreementOracle final : public Oracle {
 public:
  std::string_view name() const override { return "agreement"; }
  bool costly() const override { return true; }

  void check(const WalkView& view, Rewalk& rewalk, Violations* out) override {
    if (!view.unmutated || view.end != WalkEnd::returned || view.result > view.depth) return;
    if (view.depth <= 0 || !scenario_info(view.input->scenario).java) return;
    const WalkerId own = view.walker->id();
    if (std::ranges::find(kCompared, own) == std::end(kCompared)) return;
    if (is_exempt(own, view, view.result, view.stopped)) return;
    const std::string_view error =
        view.result <= 0 ? view.walker->error_name(view.result) : std::string_view();
    if (is_refusal(error)) return;
    java_frames(*view.walker, {view.frames, view.frame_count() * view.walker->layout().stride},
                &mine_);
    for (const WalkerId id : kCompared) {
      const Walker* other = rewalk.walker(id);
      if (id == own || other == nullptr || !traits_of(id).walks_in(view.input->mode)) continue;
      Input variant = *view.input;
      variant.walker = id;
      variant.call.options = 0;
      variant.iterator_calls.clear();
      if (!rewalk.walk_as(variant, Rewalk::Place::same, &answer_)) return;
      const char* stopped = other->facts() == nullptr ? nullptr : other->facts()->stopped;
      if (answer_.result <= 0 || is_exempt(id, view, answer_.result, stopped)) continue;
      java_frames(*other, answer_.frames, &theirs_);
      if (theirs_.empty()) continue;
      if (view.result <= 0) {
        out->add(FindingKind::contract, "refuses-what-" + std::string(name_of(id)) + "-walks",
                 std::string(error) + ", where " + std::string(name_of(id)) + " gives " +
                     std::to_string(answer_.result) + " frames");
        continue;
      }
      if (lost_in_leaf(view, own, mine_, theirs_) || lost_in_leaf(view, id, theirs_, mine_))
        continue;
      const bool theirs_whole = answer_.result < view.depth;
      const std::string difference = compare(view, id, theirs_whole);
      if (!difference.empty()) {
        out->add(FindingKind::contract, "disagrees-with-" + std::string(name_of(id)), difference);
      }
    }
  }

 private:
  static void java_frames(const Walker& walker, std::span<const std::byte> frames,
                          std::vector<JavaFrame>* out) {
    out->clear();
    const FrameLayout& layout = walker.layout();
    for (size_t i = 0; i < frames.size() / layout.stride; ++i) {
      const Frame frame = read_frame(layout, frames.data(), i);
      if (frame.type == FrameType::cpp) continue;
      out->push_back({frame.method, frame.bci < 0 ? kNoBci : frame.bci});
    }
  }

  // Whether `few`, of this walker, is `many` without some innermost frames, as it may be.
  static bool lost_in_leaf(const WalkView& view, WalkerId walker, const std::vector<JavaFrame>& few,
                           const std::vector<JavaFrame>& many) {
    if (walker != WalkerId::asgct || view.thread_state != kThreadInJava ||
        few.size() >= many.size() || view.jvm->code_map().find(view.victim->pc) != nullptr) {
      return false;
    }
    return std::equal(few.rbegin(), few.rend(), many.rbegin(),
                      [](const JavaFrame& a, const JavaFrame& b) { return a.method == b.method; });
  }

  static bool guesses_innermost(WalkerId walker) {
    return walker == WalkerId::asgct || walker == WalkerId::asgst_frame;
  }

  std::string compare(const WalkView& view, WalkerId other, bool theirs_whole) const {
    const size_t common = std::min(mine_.size(), theirs_.size());
    for (size_t i = 0; i < common; ++i) {
      const JavaFrame& mine = mine_[i];
      const JavaFrame& theirs = theirs_[i];
      const bool same_bci =
          mine.bci == theirs.bci || mine.bci == kNoBci || theirs.bci == kNoBci ||
          (i == 0 && (guesses_innermost(view.walker->id()) || guesses_innermost(other)));
      if (mine.method != theirs.method || !same_bci) {
        return "Java frame " + std::to_string(i) + " is " + named(view, mine) + ", there " +
               named(view, theirs);
      }
    }
    const bool mine_whole = view.result < view.depth;
    if ((mine_whole && mine_.size() < theirs_.size()) ||
        (theirs_whole && theirs_.size() < mine_.size())) {
      return std::to_string(mine_.size()) + " Java frames, there " + std::to_string(theirs_.size());
    }
    return {};
  }

  static std::string named(const WalkView& view, const JavaFrame& frame) {
    const MethodInfo* info = frame.method == nullptr ? nullptr : view.methods->find(frame.method);
    return (info == nullptr ? std::string("?") : info->name) + "@" + std::to_string(frame.bci);
  }

  Answer answer_;
  std::vector<JavaFrame> mine_;
  std::vector<JavaFrame> theirs_;
};

}  // namespace

std::unique_ptr<Oracle> make_agreement_oracle() { return std::make_unique<AgreementOracle>(); }

}  // namespace framestorm
