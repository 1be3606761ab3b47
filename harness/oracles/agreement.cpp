// All walkers give the same Java frames of an unmutated victim, method by method and bci by bci,
// wherever a walker has them, and the same of how each runs: interpreted, or compiled by which tier,
// or inlined. (JVMTI GetStackTrace cannot be asked in a halted world: reference.h.)
//
//   what may differ               why
//   ───────────────────────────   ────────────────────────────────────────────────────────────────
//   bci of a native method        Each API has its own value for it: -3, -1, 65535.
//
//   the innermost bci             AsyncGetCallTrace takes an interpreted frame's bytecode pointer
//                                 from where the last call left it, not from the register. The
//                                 three registers of asgst-frame do not say whether pc is a return
//                                 address, and have no bytecode pointer.
//
//   what is inlined below         AsyncGetCallTrace looks debug information up by the return
//   a stub                        address only where that is the anchor's pc. For compiled code
//                                 that called a stub, as for a safepoint or an exception's handler,
//                                 it gives that of the next place (is_decipherable_compiled_frame,
//                                 forte.cpp).
//
//   a bci that is unknown (-1)    pc is between two places with debug information. One walker looks
//                                 for the next place, another does not guess.
//
//   frames of C and C++           Only some APIs have them.
//
//   which native method it is     Where one of them has no place for its ID, and its pc is in the
//                                 interpreter: then it is a native method's there as well, at the same
//                                 pc where both have one: on top one may be the anchor's, one the register's.
//
//   a method being entered        It has no frame yet: registers name it. asgst-frame does not get
//                                 these, and AsyncGetCallTrace does not read them. Neither sees the
//                                 method's caller where that is compiled, because fp is an earlier
//                                 frame's then.
//
//   a method handle's intrinsic   On top, about to jump on: queues begin below it. It never polls.
//
//   where a trace ends            Beyond the depth of either walk there is nothing to compare.
//                                 AsyncGetCallTrace's traces end wherever frame::safe_for_sender
//                                 does not hold (vframeStreamForte, forte.cpp), as before a
//                                 deoptimised frame. JFR's end with a virtual thread's own frames.
//                                 Oracle `truth` knows whether they may.
//
//   AsyncGetCallTrace in C code   It loses frames of a thread in Java that is halted there
//                                 (leaf-call-entry-loses-compiled-frames and
//                                 vm-call-entry-loses-interpreted-frame in corpus/crashes), and
//                                 callers of compiled code and stubs whose frame is being built or
//                                 taken down. Both are reported of its own walks.
//
//   a thread in the VM without    It may be walked by way of its C frames, which asgct2 always
//   an anchor                     looks at. It has none without an sp, which is its last word to be set.
//
//   a walker of a user (plugin)   It may refuse what others walk, and have an innermost bci of its
//                                 own. Its frames without a method are not Java's. It may end where
//                                 it likes only when it says so, and where a continuation begins
//                                 when it declares that; behind ABI 1 it has no way to say it.
//
//   a walk that is wrong          Oracle `truth` reports it by its own walker.
//
// kExemptions adds more.
#include <algorithm>
#include <initializer_list>

#include "harness/base/hex.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/java_frame.h"
#include "harness/oracles/oracle.h"
#include "harness/oracles/reference.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

// Null where the walked program is none of the scenarios.
const ScenarioInfo* scenario_of(const WalkView& view) {
  return view.subject.input->scenario == ScenarioId::count
             ? nullptr
             : &scenario_info(view.subject.input->scenario);
}

struct Exemption {
  bool WalkerTraits::* trait;  // of walkers that have it
  // `result`, `stopped`: of that walker's walk.
  bool (*applies)(const WalkView& view, int32_t result, const char* stopped);
  std::string_view reason;
};

bool in(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

constexpr Exemption kExemptions[] = {
    {&WalkerTraits::walks_carriers,
     [](const WalkView& view, int32_t, const char*) { return view.ends_as_asked(); },
     "it was asked to leave out the carrier (kEndAtContinuation)"},
    {&WalkerTraits::ends_where_it_distrusts_a_frame,
     [](const WalkView& view, int32_t, const char*) {
       const ScenarioInfo* const scenario = scenario_of(view);
       return scenario != nullptr && !scenario->asgct_trace.empty();
     },
     "AsyncGetCallTrace stops or skips there by design (ScenarioInfo::asgct_trace)"},
    {&WalkerTraits::ends_where_it_distrusts_a_frame,
     [](const WalkView&, int32_t result, const char*) { return result <= 0; },
     "AsyncGetCallTrace refuses stubs without a frame size, prologues and VM calls without a last "
     "Java pc by design (ScenarioInfo::asgct_percent)"},
    {&WalkerTraits::sees_frozen_frames,
     [](const WalkView& view, int32_t, const char*) {
       const ScenarioInfo* const scenario = scenario_of(view);
       return scenario != nullptr && !scenario->thawed_trace.empty();
     },
     "others do not read the frames in the heap (ScenarioInfo::thawed_trace)"},
    {&WalkerTraits::needs_registers_only,
     [](const WalkView& view, int32_t, const char*) {
       return view.record.thread_state != kThreadInJava ||
              (view.record.last_java_pc != 0 &&
               view.subject.jvm->code_map().find(view.subject.victim->pc) == nullptr);
     },
     "three registers of C code say nothing of where Java begins: the context and the thread do"},
    {&WalkerTraits::needs_registers_only,
     [](const WalkView&, int32_t result, const char* stopped) {
       return result <= 0 || stopped != nullptr;
     },
     "nor that a frame is being built or taken down, as in a stub's first instructions"},
    {&WalkerTraits::needs_registers_only,
     [](const WalkView& view, int32_t, const char*) {
       const CodeEntry* const code = view.subject.jvm->code_map().find(view.subject.victim->pc);
       return scenario_of(view) == nullptr && (code == nullptr || code->kind != CodeKind::codelet);
     },
     "nor whether pc is a return address, on which depends what is inlined there, nor where an "
     "adapter keeps its caller; in the loops of the scenarios it is the same"},
};

// Errors that say when a thread may not be walked, which the APIs see differently:
// AsyncGetCallTrace walks at a safepoint, the others only when they are told to. And a finding that
// there is already.
bool is_refusal(std::string_view error) {
  return in(error, {"GC_active", "unsafe_state", "thread_exit", "deopt", "thread_not_Java",
                    "contained_fault", "wrong_thread_state"});
}

bool is_exempt(const WalkerTraits& walker, const WalkView& view, int32_t result,
               const char* stopped) {
  return std::ranges::any_of(kExemptions, [&](const Exemption& exemption) {
    return walker.*exemption.trait && exemption.applies(view, result, stopped);
  });
}

class AgreementOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (!applies(view)) return;
    for (const WalkerId id : kFuzzedWalkers) {
      if (is_comparable(view, id)) out->add(FurtherWalk::as(view, id, 0));
    }
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!applies(view)) return;
    const WalkRecord& record = view.record;
    const WalkerTraits& own = view.subject.walker->traits();
    if (is_somebody_elses(own) && is_known_wrong(*out)) return;
    if (is_exempt(own, view, record.result, record.stopped())) return;
    const std::string_view error =
        record.result <= 0 ? view.subject.walker->error_name(record.result) : std::string_view();
    if (is_refusal(error)) return;
    java_frames(view, *view.subject.walker, record, &mine_);
    if (mine_.empty() && is_somebody_elses(own) && !own.is_declared()) return;
    if (!own.gives_java_frames) return;
    for (const WalkerId id : kFuzzedWalkers) {
      const Walker* other = further.walker(id);
      const WalkerTraits& traits = traits_of(id);
      // Only that it goes on where the other one ends can be believed.
      const bool is_believed = !traits.ends_where_it_distrusts_a_frame || !is_between_frames(view);
      if (!is_believed && !own.is_declared()) continue;
      if (other == nullptr || !is_comparable(view, id)) continue;
      const WalkRecord* const answer = further.make(FurtherWalk::as(view, id, 0));
      if (answer == nullptr) return;
      if (answer->result <= 0 || is_exempt(traits, view, answer->result, answer->stopped())) {
        continue;
      }
      java_frames(view, *other, *answer, &theirs_);
      if (theirs_.empty() || is_refuted(view, *answer)) continue;
      if (record.result <= 0) {
        if (traits.walks_without_an_anchor && has_no_anchor(view)) continue;
        out->broken("refuses-what-" + std::string(traits.name) + "-walks",
                    std::string(error) + ", where " + std::string(traits.name) + " gives " +
                        std::to_string(answer->result) + " frames");
        continue;
      }
      const bool theirs_cut = answer->result >= record.depth;
      const std::string difference = compare(view, own, traits, theirs_cut);
      if (ends_early(view, own)) {
        out->broken("ends-early", "the trace ends after " + std::to_string(mine_.size()) +
                                      " Java frames and does not say why; there are " +
                                      std::to_string(theirs_.size()));
      } else if (is_believed && !difference.empty()) {
        out->broken("disagrees-with-" + std::string(traits.name), difference);
      }
    }
  }

 private:
  static bool applies(const WalkView& view) {
    const WalkRecord& record = view.record;
    if (!view.subject.unmutated || record.end != WalkEnd::returned ||
        record.result > record.depth || record.depth <= 0) {
      return false;
    }
    const ScenarioInfo* const scenario = scenario_of(view);
    if (scenario != nullptr && !scenario->java) return false;
    const WalkerTraits& own = view.subject.walker->traits();
    if (is_somebody_elses(own)) return record.result > 0;
    return own.is_fuzzed() && own.gives_traces();
  }

  // Oracle `truth` knows that the methods are wrong; here are their bcis, too.
  static bool is_known_wrong(const Violations& found) {
    return std::ranges::count(found.findings(), kWrongFrames, &Finding::clause) > 0;
  }

  static bool is_somebody_elses(const WalkerTraits& walker) {
    return walker.origin == WalkerOrigin::shared_object;
  }

  static bool is_comparable(const WalkView& view, WalkerId other) {
    const WalkerTraits& traits = traits_of(other);
    return other != view.record.walker && traits.gives_traces() && !traits.acts_on_threads &&
           traits.walks_in(view.subject.input->mode);
  }

  static bool gives_all_frames(const WalkerTraits& walker) {
    // Where a plugin's ends is looked at by ends_early().
    return !walker.ends_where_it_distrusts_a_frame && !walker.ends_at_a_continuation &&
           !walker.is_declared();
  }

  static void java_frames(const WalkView& view, const Walker& walker, const WalkRecord& record,
                          std::vector<JavaFrame>* out) {
    read_java_frames(walker.traits(), record.frames, record.frame_count(),
                     view.subject.jvm->code_map(), *view.subject.methods, out);
  }

  // Where the innermost frame may not stand as its code's description says: in C code, in stubs, and in
  // compiled code that builds it or takes it down.
  static bool is_between_frames(const WalkView& view) {
    if (view.record.thread_state != kThreadInJava) return false;
    const CodeEntry* const code = view.subject.jvm->code_map().find(view.subject.victim->pc);
    if (code == nullptr || code->kind == CodeKind::stub) return true;
    if (code->kind == CodeKind::codelet) return false;
    return scenario_of(view) == nullptr ||
           (code->kind == CodeKind::nmethod && !view.frame_stands());
  }

  static bool has_no_anchor(const WalkView& view) {
    const Victim& victim = *view.subject.victim;
    return view.record.thread_state != kThreadInJava &&
           (view.record.last_java_pc == 0 || victim.last_java_sp(view.subject.jvm->layout()) == 0);
  }

  // Whether theirs_, of another walker, are not what the scenario runs.
  bool is_refuted(const WalkView& view, const WalkRecord& other) {
    const ScenarioInfo* const scenario = scenario_of(view);
    if (scenario == nullptr) return false;
    names_.clear();
    for (const JavaFrame& frame : theirs_) {
      names_.push_back(method_name(frame, *view.subject.methods));
    }
    return !matches(names_, *scenario, traits_of(other.walker), nullptr,
                    other.result == other.depth);
  }

  static bool begin_alike(const std::vector<JavaFrame>& one, const std::vector<JavaFrame>& other) {
    return !one.empty() && !other.empty() && one[0].has_method_of(other[0]) &&
           one[0].bci == other[0].bci;
  }

  // One has no ID. A walker may give none, or that of the native method that it stands for.
  static bool is_intrinsic(const WalkView& view, const JavaFrame& frame) {
    if (frame.method == nullptr && frame.type == FrameType::native && !frame.unnamed) return true;
    const CodeEntry* const code = view.subject.jvm->code_map().find(frame.pc);
    return is_method_handle_intrinsic(
        frame.unnamed && code != nullptr ? code->name : method_name(frame, *view.subject.methods));
  }

  static JavaFrames below_intrinsics(const WalkView& view, JavaFrames frames) {
    while (!frames.empty() && is_intrinsic(view, frames.front())) frames = frames.subspan(1);
    return frames;
  }

  // With how many frames `longer` begins that `shorter` leaves out since a method is being entered.
  // It has bci 0, unless `guessed`. `cut`: by its depth `longer` may end before the first that both have.
  static size_t being_entered(const WalkView& view, const std::vector<JavaFrame>& longer,
                              bool guessed, bool cut, const std::vector<JavaFrame>& shorter) {
    const CodeEntry* const code = view.subject.jvm->code_map().find(view.subject.victim->pc);
    const bool at_entry = code != nullptr && code->kind == CodeKind::codelet &&
                          code->name.find("method entry point") != std::string::npos;
    if (longer.empty() || shorter.empty()) return 0;
    if (!guessed && longer[0].bci != 0 && !(at_entry && longer[0].bci == kNoBci)) return 0;
    const size_t most = at_entry ? longer.size() : 1;
    for (size_t i = 1; i < longer.size() && i <= most; ++i) {
      if (longer[i].has_method_of(shorter[0]) && longer[i].bci == shorter[0].bci) return i;
    }
    return cut && longer.size() <= most ? longer.size() : 0;
  }

  // Whether mine_ is the beginning of theirs_ and nobody has said that it would be.
  bool ends_early(const WalkView& view, const WalkerTraits& own) const {
    if (!own.is_declared() || view.record.result >= view.record.depth ||
        mine_.size() >= theirs_.size() || (own.says_when_cut && view.record.stopped() != nullptr)) {
      return false;
    }
    const MethodInfo* const next = view.subject.methods->find(theirs_[mine_.size()].method);
    if (own.stops_at_continuations && next != nullptr && is_of_continuation(next->name))
      return false;
    return compare(view, mine_, theirs_, own.guesses_innermost_bci).empty();
  }

  std::string compare(const WalkView& view, const WalkerTraits& own, const WalkerTraits& other,
                      bool theirs_cut) const {
    JavaFrames mine = mine_;
    JavaFrames theirs = theirs_;
    const bool mine_cut = view.record.result >= view.record.depth;
    if (other.begins_below_intrinsics) mine = below_intrinsics(view, mine);
    if (own.begins_below_intrinsics) theirs = below_intrinsics(view, theirs);
    if (!begin_alike(mine_, theirs_)) {
      if (other.guesses_innermost_bci) {
        mine =
            mine.subspan(being_entered(view, mine_, own.guesses_innermost_bci, mine_cut, theirs_));
      }
      if (own.guesses_innermost_bci) {
        theirs = theirs.subspan(
            being_entered(view, theirs_, other.guesses_innermost_bci, theirs_cut, mine_));
      }
    }
    const bool mine_whole = !mine_cut && gives_all_frames(own);
    const bool theirs_whole = !theirs_cut && gives_all_frames(other);
    std::string difference =
        compare(view, mine, theirs, own.guesses_innermost_bci || other.guesses_innermost_bci);
    if (difference.empty() && ((mine_whole && mine.size() < theirs.size()) ||
                               (theirs_whole && theirs.size() < mine.size()))) {
      difference =
          std::to_string(mine.size()) + " Java frames, there " + std::to_string(theirs.size());
    }
    const bool forgiven = !difference.empty() && is_below_stub(view) &&
                          ((own.looks_up_inlining_by_return_address &&
                            differ_in_what_is_inlined(view, mine_, theirs_)) ||
                           (other.looks_up_inlining_by_return_address &&
                            differ_in_what_is_inlined(view, theirs_, mine_)));
    return forgiven ? std::string() : difference;
  }

  // "" when one is the beginning of the other.
  static std::string compare(const WalkView& view, JavaFrames mine, JavaFrames theirs,
                             bool innermost_is_guessed) {
    for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
      const bool same_bci = mine[i].has_bci_of(theirs[i]) || (i == 0 && innermost_is_guessed);
      const bool same_method = mine[i].has_method_of(theirs[i], i == 0 && innermost_is_guessed) ||
                               (mine[i].native && theirs[i].native && is_intrinsic(view, mine[i]) &&
                                is_intrinsic(view, theirs[i]));
      if (!same_method || !same_bci) {
        return "Java frame " + std::to_string(i) + " is " + named(view, mine[i]) + ", there " +
               named(view, theirs[i]);
      }
      if (mine[i].runs_unlike(theirs[i])) {
        return "Java frame " + std::to_string(i) + " " + named(view, mine[i]) + " is " +
               how_it_runs(mine[i]) + ", there " + how_it_runs(theirs[i]);
      }
    }
    return {};
  }

  // Whether the thread's last Java frame is that of a stub.
  static bool is_below_stub(const WalkView& view) {
    const CodeEntry* const code = view.subject.jvm->code_map().find(view.record.last_java_pc);
    return code != nullptr && code->kind == CodeKind::stub;
  }

  // Whether the walks differ at most in what is inlined into the innermost compiled frame.
  static bool differ_in_what_is_inlined(const WalkView& view, JavaFrames asgct, JavaFrames other) {
    const auto outermost = std::ranges::find(other, false, &JavaFrame::is_inlined);
    if (outermost == other.end()) return false;
    const JavaFrames callers{outermost + 1, other.end()};
    for (size_t i = 0; i < asgct.size(); ++i) {
      const JavaFrames rest = asgct.subspan(i + 1);
      if (asgct[i].method == outermost->method && rest.size() <= callers.size() &&
          compare(view, rest, callers, /*innermost_is_guessed=*/false).empty()) {
        return true;
      }
    }
    return false;
  }

  static std::string named(const WalkView& view, const JavaFrame& frame) {
    return method_name(frame, *view.subject.methods) + "@" + std::to_string(frame.bci) +
           (frame.unnamed ? " at pc " + hex(frame.pc) : "");
  }

  std::vector<JavaFrame> mine_;
  std::vector<JavaFrame> theirs_;
  std::vector<std::string> names_;
};

const RegisteredOracle<AgreementOracle> kRegistered({.name = "agreement",
                                                     .order = 120,
                                                     .needs = {Need::further_walks, Need::trace},
                                                     .ask = &AgreementOracle::ask});

}  // namespace
}  // namespace framestorm
