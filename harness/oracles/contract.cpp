// The trace is one that the API's documentation allows.
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/executable_memory.h"
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

constexpr int kHighestTier = 4;    // CompLevel_full_optimization
constexpr int32_t kJavaTrace = 1;  // ASGST_JAVA_TRACE

class ContractOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    if (view.record.end != WalkEnd::returned) return;
    if (view.record.result <= 0) {
      check_error(view, out);
      return;
    }
    if (view.record.result > view.record.depth) {
      out->broken("count-exceeds-depth", std::to_string(view.record.result) + " frames for depth " +
                                             std::to_string(view.record.depth));
      return;  // frames beyond depth are not ours to read
    }
    check_frames(view, out);
  }

 private:
  static void check_error(const WalkView& view, Violations* out) {
    // Other walkers have no such mark, and errors of their own.
    if (view.record.result == kNoResult && view.subject.walker->traits().is_in_libjvm()) {
      out->broken("result-not-written", "neither a count of frames nor an error");
    } else if (!view.subject.walker->documented_error(view.record.result)) {
      out->broken("undocumented-error",
                  "result " + std::to_string(view.record.result) + " is not documented");
    } else if (view.record.result == 0 && view.record.depth > 0 &&
               view.subject.walker->traits().at_polls_only) {
      // Which is an error of a request; JFR's trace of one has a frame, or is invalid.
      out->broken("no-frames-and-no-error",
                  "result 0 for depth " + std::to_string(view.record.depth));
    } else if (view.subject.victim->is_java_thread && !view.walked_another_thread() &&
               !view.subject.walker->error_agrees(view.record.result, view.record.thread_state)) {
      out->broken("error-disagrees-with-state",
                  "result " + std::to_string(view.record.result) + " (" +
                      std::string(view.subject.walker->error_name(view.record.result)) +
                      ") in thread state " + std::to_string(view.record.thread_state));
    }
    check_reason(view, out);
  }

  // Of walkers that tell both, of threads whose Java frames they look for: whether the answer is that a frame
  // cannot be walked, and why. Where they cannot begin they say why, too, unless there was no context.
  static void check_reason(const WalkView& view, Violations* out) {
    const WalkerTraits& walker = view.subject.walker->traits();
    // A mutated sp may be another thread's.
    const bool is_java = view.subject.victim->is_java_thread &&
                         (walker.finds_victim != FindsVictim::by_sp || !view.subject.mutated);
    if (!walker.is_added() || !is_java || view.record.facts_if_any() == nullptr ||
        std::ranges::none_of(walker.errors, &WalkerError::says_not_walkable)) {
      return;
    }
    const WalkerError* const error = walker.find_error(view.record.result);
    const bool not_walkable = error != nullptr && error->says_not_walkable();
    const bool stopped = view.record.stopped() != nullptr;
    const bool cannot_begin =
        error != nullptr && error->says_unknown_in_java() && view.record.context != nullptr;
    if ((not_walkable || cannot_begin) && !stopped) {
      out->broken("not-walkable-without-reason", std::string(error->name) + ", and not why");
    } else if (view.record.result == 0 && stopped) {
      out->broken("no-frame-and-stopped",
                  "no frame is there, and it was stopped by " + std::string(view.record.stopped()));
    } else if (view.record.result == 0 && view.record.depth > 0 && !view.walked_another_thread() &&
               has_anchor_off_its_stack(view)) {
      out->broken("no-frame-and-an-anchor",
                  "no frame is there, and the thread's anchor is off its stack");
    }
  }

  // Of a thread outside Java, which has Java frames that cannot be walked then.
  static bool has_anchor_off_its_stack(const WalkView& view) {
    const Victim& victim = *view.subject.victim;
    const uintptr_t sp = victim.last_java_sp(view.subject.jvm->layout());
    return stays_outside_java(view.record.thread_state) && sp != 0 && !victim.has_word_at(sp);
  }

  // Of the innermost frame, whether all it has may be in registers:
  // a stub that ends in a tail jump has popped even its return address when it jumps (tailjmpInd in
  // x86_64.ad, OptoRuntime's exception blob); the interpreter's entries take theirs into rax before
  // they make room for locals (TemplateInterpreterGenerator::generate_normal_entry), and parameters
  // are the caller's.
  static bool has_no_stack(const WalkView& view, const Frame& innermost) {
    const CodeEntry* const code = view.subject.jvm->code_map().find(innermost.pc);
    if (code == nullptr) return false;
    if (is_machine(innermost.type)) return true;
    return code->kind == CodeKind::codelet && innermost.bci == 0 &&
           code->name.starts_with("method entry point");
  }

  // The stub that thaws a continuation takes its return address off the stack, and then calls the VM
  // (StubGenerator::generate_cont_thaw).
  static bool thaws(const WalkView& view, const Frame& frame) {
    const CodeEntry* const code = view.subject.jvm->code_map().find(frame.pc);
    return is_machine(frame.type) && code != nullptr && code->kind == CodeKind::stub &&
           code->name == "cont_thaw";
  }

  void check_frames(const WalkView& view, Violations* out) {
    const FrameLayout& layout = view.subject.walker->layout();
    jmethodID last_method = nullptr;
    const MethodInfo* info = nullptr;
    Frame callee;
    for (size_t i = 0; i < view.record.frame_count(); ++i) {
      const Frame frame = read_frame(layout, view.record.frames, i);
      if (layout.type >= 0 && !check_type(view, i, frame, callee, out)) return;
      if (layout.method >= 0 && frame.method != nullptr) {
        if (frame.method != last_method) {
          info = view.subject.methods->find(frame.method);
          last_method = frame.method;
        }
        if (info == nullptr) {
          out->broken("method-unresolved",
                      "frame " + std::to_string(i) + " has a " +
                          (view.subject.walker->traits().is_declared() ? "method" : "jmethodID") +
                          " that no class has");
          return;
        }
        if (frame.bci < view.subject.walker->traits().lowest_bci ||
            frame.bci > std::max(info->last_bci, 0)) {
          out->broken("bci-out-of-range", "frame " + std::to_string(i) + " " + info->name +
                                              " has bci " + std::to_string(frame.bci) +
                                              ", its last is " + std::to_string(info->last_bci));
          return;
        }
        if (!check_method(view, i, frame, *info, out)) return;
      }
      if (layout.sp >= 0 && frame.sp != 0) {
        const bool one_physical = callee.type == FrameType::inlined;
        const bool nothing_left = frame.sp == callee.sp &&
                                  ((i == 1 && has_no_stack(view, callee)) || thaws(view, callee));
        if (one_physical ? frame.sp != callee.sp : frame.sp <= callee.sp && !nothing_left) {
          out->broken(one_physical ? "sp-of-inlined-frame" : "sp-not-advancing",
                      "frame " + std::to_string(i) +
                          (one_physical ? " has another sp than what is inlined into it"
                                        : " has an sp not above its callee's"));
          return;
        }
      }
      callee = frame;
    }
    const WalkerTraits& walker = view.subject.walker->traits();
    if (walker.is_declared() && !walker.says_when_cut && view.subject.unmutated &&
        view.record.stopped() != nullptr) {
      out->broken("truncated", "the trace of a walker that declares its traces complete is cut: " +
                                   std::string(view.record.stopped()));
    }
    const WalkFacts* const facts = view.record.facts_if_any();
    // Iterators know it when they come there.
    if (walker.is_added() && walker.masks && facts != nullptr && facts->left_out_frozen &&
        view.record.result == view.record.depth && !view.ends_as_asked()) {
      out->broken("says-frozen-where-full",
                  "it says that frames are in the heap, and had no room to come there");
    }
    // What is inlined is inlined into something, unless there was no more room.
    if (callee.type == FrameType::inlined && view.record.result < view.record.depth) {
      out->broken("inlined-without-caller", "the last frame is an inlined one");
    }
  }

  // Of walkers whose answers the headers of harness/hotspot describe, and a frame whose method is known. False
  // when something is wrong.
  static bool check_method(const WalkView& view, size_t index, const Frame& frame,
                           const MethodInfo& info, Violations* out) {
    const WalkerTraits& walker = view.subject.walker->traits();
    if (!walker.is_added()) return true;
    const auto wrong = [&](std::string_view clause, const std::string& what) {
      out->broken(clause, "frame " + std::to_string(index) + " " + info.name + what);
      return false;
    };
    const auto& types = walker.layout.types;
    const bool tells_native = std::ranges::find(types, FrameType::native) != types.end();
    const bool native = frame.type == FrameType::native;
    if (tells_native && native != view.subject.methods->is_native(frame.method)) {
      return wrong("type-disagrees-with-method", native ? " is of a native method, which it is not"
                                                        : " is not of a native method");
    }
    // While bytecodes run it is in a register, at calls in the frame.
    const bool may_guess = index == 0 && walker.guesses_innermost_bci;
    if (walker.layout.tier >= 0 && frame.tier == 0 && !native && !may_guess &&
        view.subject.unmutated && frame.bci == kNoBci) {
      return wrong("bci-missing", " is interpreted and has no bci");
    }
    const WalkFacts* const facts = view.record.facts_if_any();
    const bool put_together = facts != nullptr && facts->put_together;
    if ((view.record.options & walker.options & kEndAtContinuation) != 0 && !put_together &&
        index + 1 < view.record.frame_count() && info.name == kEntersContinuation) {
      return wrong("goes-on-behind-a-continuation", " is not the last frame, as the options ask");
    }
    return true;
  }

  // Beside their method.
  static bool has_pcs(const FrameLayout& layout) { return layout.pc >= 0 && !layout.is_union(); }

  static bool has_pc_of_natives(const WalkView& view) {
    const WalkerTraits& walker = view.subject.walker->traits();
    return walker.is_added() && has_pcs(walker.layout) && !walker.layout.unnamed_natives &&
           !view.subject.mutated;
  }

  // A mutated pc may be there; others are return addresses and where threads were.
  static bool is_beside_code(const WalkView& view, const Frame& frame) {
    return view.subject.mutated && has_pcs(view.subject.walker->layout()) &&
           !is_machine(frame.type) && frame.pc != 0 &&
           view.subject.jvm->code_map().is_beside_code(frame.pc);
  }

  // What the VM makes itself, without an ID, has no frame in the interpreter: linkers of method handles are
  // compiled, and their entries there are jumps.
  static bool is_unnamed_in_interpreter(const WalkView& view, const Frame& frame) {
    const WalkerTraits& walker = view.subject.walker->traits();
    if (frame.type != FrameType::native || frame.method != nullptr || !walker.is_added() ||
        !has_pcs(walker.layout)) {
      return false;
    }
    const CodeEntry* const code = view.subject.jvm->code_map().find(frame.pc);
    return code != nullptr && code->kind == CodeKind::codelet;
  }

  // Whatever was mutated: the added walkers look where a pc is before they take it for one of C.
  bool is_in_no_code(const WalkView& view, const Frame& frame) {
    return frame.type == FrameType::cpp && frame.pc != 0 &&
           view.subject.walker->traits().is_added() && !executable_.contains(frame.pc);
  }

  // For walkers that tell types apart. False when something is wrong.
  bool check_type(const WalkView& view, size_t index, const Frame& frame, const Frame& callee,
                  Violations* out) {
    const auto wrong = [&](std::string_view clause, const std::string& what) {
      out->broken(clause, "frame " + std::to_string(index) + " " + what);
      return false;
    };
    if (frame.type == FrameType::invalid) {
      return wrong("frame-type-out-of-range", "has a type that the API does not have");
    }
    if (callee.type == FrameType::inlined &&
        (is_machine(frame.type) || frame.type == FrameType::native ||
         frame.type == FrameType::interpreted)) {
      return wrong("inlined-without-caller", "is not compiled Java and has a callee inlined");
    }
    if ((frame.type == FrameType::stub || frame.unnamed) &&
        !view.subject.jvm->code_map().in_code_cache(frame.pc)) {
      return wrong("made-frame-outside-code-cache",
                   "is a stub's or of a native method and has a pc outside the code cache");
    }
    if (frame.type == FrameType::native && has_pc_of_natives(view) &&
        !view.subject.jvm->code_map().in_code_cache(frame.pc)) {
      return wrong("made-frame-outside-code-cache",
                   "is a native method's and has a pc outside the code cache");
    }
    if (is_beside_code(view, frame)) {
      return wrong("pc-beside-code", "is of Java and has a pc in a blob's memory, beside its code");
    }
    if (is_machine(frame.type)) {
      if (frame.method != nullptr || frame.bci != kNoBci) {
        return wrong("cpp-frame-of-a-method", "is one of C or C++ and has a method or a bci");
      }
      // profile.h: the pc is null in stubs and other code the VM made. asgct2.h: these are FRAME_STUB.
      if (frame.type == FrameType::cpp && view.subject.walker->layout().is_union() &&
          frame.pc != 0 && view.subject.jvm->code_map().find(frame.pc) != nullptr) {
        return wrong("cpp-frame-in-made-code",
                     "is one of C or C++ and has a pc in code the VM made");
      }
      if (is_in_no_code(view, frame)) {
        return wrong("cpp-frame-in-no-code",
                     "is one of C or C++ and has a pc that cannot be executed");
      }
      // Threads that are not Java's have no others, asked for or not.
      const WalkFacts* facts = view.record.facts_if_any();
      const bool of_java = facts == nullptr || !facts->has_kind || facts->kind == kJavaTrace;
      if (view.subject.walker->traits().options != 0 && of_java &&
          view.subject.victim->is_java_thread &&
          (view.subject.input->call.options & kIncludeCFrames) == 0) {
        return wrong("cpp-frame-unasked", "is one of C or C++, which the options leave out");
      }
      return true;
    }
    // Signed: kNoTier is -1. NOLINTNEXTLINE(bugprone-signed-char-misuse)
    const auto tier = static_cast<int>(frame.tier);
    if (tier < kNoTier || tier > kHighestTier) {
      return wrong("tier-out-of-range", "has tier " + std::to_string(tier));
    }
    const bool tells_tier = view.subject.walker->layout().tier >= 0;
    if (tells_tier && tier == kNoTier && view.subject.walker->traits().is_added() &&
        view.subject.walker->layout().names(frame.type)) {
      return wrong("tier-missing", "is a method's and has no tier");
    }
    if ((frame.type == FrameType::interpreted && tells_tier && tier != 0) ||
        ((frame.type == FrameType::compiled || frame.type == FrameType::inlined) && tier == 0)) {
      return wrong("tier-disagrees-with-type", "has tier " + std::to_string(tier));
    }
    // A method may have no ID, and then where it is in the method is known all the same.
    const bool interpreted = frame.type == FrameType::interpreted ||
                             (frame.type == FrameType::java && tells_tier && tier == 0);
    if (interpreted && frame.method == nullptr && frame.bci < 0) {
      return wrong("interpreted-frame-of-nothing", "is interpreted and has neither method nor bci");
    }
    if (is_unnamed_in_interpreter(view, frame)) {
      return wrong("interpreted-frame-of-nothing",
                   "is of a native method that the interpreter runs, and has no method");
    }
    const auto native_bci = view.subject.walker->traits().native_bci;
    if (frame.type == FrameType::native && native_bci && frame.bci != *native_bci) {
      return wrong("native-bci", "is of a native method and has bci " + std::to_string(frame.bci));
    }
    return true;
  }

  ExecutableMemory executable_;
};

const RegisteredOracle<ContractOracle> kRegistered({.name = "contract",
                                                    .order = 50,
                                                    .needs = {Need::trace}});

}  // namespace
}  // namespace framestorm
