// Frames are where their thread's stack and their code can have them. That holds whatever was mutated: a
// walk may be led astray, but not to where no frame can be.
//
//   frame                        demanded
//   ──────────────────────────── ───────────────────────────────────────────────────────────────────
//   any that has an sp           the sp is that of a word on the stack of the thread that was walked;
//                                where nothing is mutated, not below the thread's: but a word, where
//                                the frame has nothing on the stack and its caller is at it, or is not
//                                found
//   compiled, with its inlined   its Java frames are those that the code's debug information has at pc
//                                or, where there is none, at the next place that has some
//   the same                     its tier is that of the code at pc
//   compiled, a caller           pc has debug information, or stands behind a call (of a leaf); below a
//                                Java frame, which no leaf is, it has some, where stubs are in the trace
//   C or C++                     not right below a Java frame: a stub stands between
//   an entry of Java             not the last one of a trace with C frames that says that it is whole
//
// Of walkers that tell sp, or pc and tier.
#include <algorithm>

#include "harness/base/hex.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/jvm/call_site.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

class PlacesOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further&, Violations* out) override {
    const WalkerTraits& walker = view.subject.walker->traits();
    const FrameLayout& layout = walker.layout;
    // A request of JFR's is no trace: it has the registers of the context.
    if (!walker.is_added() || layout.type < 0 || view.record.result > view.record.depth) return;
    const bool tells_sp =
        layout.sp >= 0 && view.subject.victim->is_java_thread && !walker.needs_registers_only;
    const bool tells_pc = layout.pc >= 0 && !layout.is_union() && layout.tier >= 0;
    if (!tells_sp && !tells_pc) return;
    java_.clear();
    Frame callee;
    for (size_t i = 0; i < view.record.frame_count(); ++i) {
      const Frame frame = view.frame(i);
      if (tells_sp && frame.sp != 0 && !view.subject.victim->has_word_at(frame.sp)) {
        out->broken("sp-off-the-stack", "frame " + std::to_string(i) + " has sp " + hex(frame.sp) +
                                            ", the stack is " +
                                            hex(view.subject.victim->stack_end) + " to " +
                                            hex(view.subject.victim->stack_base));
        return;
      }
      if (tells_sp && begins_at_given_sp(view) && !is_live(view, i, frame)) {
        out->broken("sp-below-the-threads", "frame " + std::to_string(i) + " has sp " +
                                                hex(frame.sp) + ", the thread " +
                                                hex(given_sp(view)));
        return;
      }
      if (is_compiled(frame) || frame.type == FrameType::inlined) {
        if (tells_pc && !has_tier_of_code(view, i, frame, out)) return;
        java_.push_back({frame.method, std::max(frame.bci, kNoBci)});
      }
      if (tells_pc && is_compiled(frame) && !check_code(view, i, frame, callee, out)) return;
      const bool is_called_by_c = i > 0 && is_machine(frame.type) && !is_machine(callee.type) &&
                                  !view.subject.jvm->code_map().in_code_cache(frame.pc);
      if (tells_pc && is_called_by_c) {
        out->broken("java-called-from-c", "frame " + std::to_string(i) + " is one of C at " +
                                              hex(frame.pc) + ", and its callee one of Java");
        return;
      }
      if (frame.type == FrameType::inlined) continue;
      java_.clear();
      callee = frame;
    }
    if (tells_pc) check_end(view, callee, out);
  }

 private:
  static bool is_compiled(const Frame& frame) {
    return frame.type == FrameType::compiled || (frame.type == FrameType::java && frame.tier > 0);
  }

  // Where nothing is mutated, and of a thread in Java whatever is: its own sp says what it has left.
  static bool begins_at_given_sp(const WalkView& view) {
    return view.subject.unmutated || (view.record.thread_state == kThreadInJava &&
                                      view.subject.input->call.context == ContextArg::victim);
  }

  // What the walk was told of the thread's sp.
  static uintptr_t given_sp(const WalkView& view) {
    return view.subject.unmutated ? view.subject.victim->sp
                                  : get_register(*view.record.expected_context, Register::sp);
  }

  static bool is_live(const WalkView& view, size_t index, const Frame& frame) {
    const uintptr_t sp = given_sp(view);
    if (frame.sp == 0 || frame.sp >= sp) return true;
    const bool is_last = index + 1 == view.record.frame_count();
    const bool has_nothing = !is_last && view.frame(index + 1).sp == sp;
    // A mutated frame pointer leads to no caller.
    const bool lacks_its_caller = is_last && view.subject.mutated;
    return frame.sp == sp - sizeof(uintptr_t) &&
           (has_nothing || lacks_its_caller || view.record.result == view.record.depth);
  }

  // False when it has another one.
  static bool has_tier_of_code(const WalkView& view, size_t index, const Frame& frame,
                               Violations* out) {
    const CodeEntry* const entry = view.subject.jvm->code_map().find(frame.pc);
    if (entry == nullptr || entry->tier == 0 || entry->tier == frame.tier) return true;
    out->broken("tier-of-other-code", "frame " + std::to_string(index) + " has tier " +
                                          std::to_string(frame.tier) + ", the code at its pc is " +
                                          entry->name + "'s of tier " +
                                          std::to_string(entry->tier));
    return false;
  }

  // java_ has the frame's and what is inlined into it. False when something is wrong.
  bool check_code(const WalkView& view, size_t index, const Frame& frame, const Frame& callee,
                  Violations* out) const {
    const CodeMap& code = view.subject.jvm->code_map();
    const CodeEntry* const entry = code.find(frame.pc);
    if (entry == nullptr || entry->debug == nullptr || !entry->debug->has_places()) return true;
    const auto wrong = [&](std::string_view clause, const std::string& what) {
      out->broken(clause, "frame " + std::to_string(index) + " in " + entry->name + " at " +
                              std::to_string(frame.pc - entry->begin) + what);
      return false;
    };
    const auto here = entry->debug->at(frame.pc);
    const bool is_caller = callee.type != FrameType::none && code.in_code_cache(callee.pc);
    if (is_caller && here.empty() && !follows_call(frame.pc, entry->begin)) {
      return wrong("caller-behind-no-call", ", which is behind no call");
    }
    if (is_caller && here.empty() && !is_machine(callee.type) && view.gives_c_frames()) {
      return wrong("caller-not-described", ", where no call of Java is");
    }
    // Where code was interrupted, the next place's hold.
    const bool is_known = !here.empty() && is_of(here);
    const bool is_next = (!is_caller || here.empty()) && is_of(entry->debug->after(frame.pc));
    return is_known || is_next ||
           wrong("not-what-is-compiled-there", ", where other Java frames are compiled");
  }

  // Of one that says why it ended where it did not come to its end.
  static void check_end(const WalkView& view, const Frame& last, Violations* out) {
    const WalkFacts* const facts = view.record.facts_if_any();
    if (facts == nullptr || facts->put_together || view.record.cut() != nullptr ||
        view.record.result >= view.record.depth || !view.gives_c_frames() || view.ends_as_asked()) {
      return;
    }
    const CodeEntry* const code = view.subject.jvm->code_map().find(last.pc);
    if (is_machine(last.type) && code != nullptr && code->kind == CodeKind::stub &&
        code->name == "call_stub") {
      out->broken("ends-at-an-entry",
                  "the trace ends where C called Java, and says that it is whole");
    }
  }

  // A method may have no ID.
  bool is_of(std::span<const DebugInfo::JavaFrame> compiled) const {
    if (compiled.empty()) return java_.size() == 1 && java_.front().bci == kNoBci;
    return std::ranges::equal(java_, compiled, [](const auto& given, const auto& there) {
      return (given.method == nullptr || given.method == there.method) &&
             given.bci == std::max(there.bci, kNoBci);
    });
  }

  std::vector<DebugInfo::JavaFrame> java_;  // of one compiled frame, innermost first
};

const RegisteredOracle<PlacesOracle> kRegistered({.name = "places",
                                                  .order = 53,
                                                  .needs = {Need::trace, Need::standing_code}});

}  // namespace
}  // namespace framestorm
