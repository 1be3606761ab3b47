// The frame that an unbiased request names (JFR's samplers) is one of the thread's.
//
//   bcp          demanded of sp and pc
//   ──────────── ─────────────────────────────────────────────────────────────────────────────────
//   null         the innermost frame that is not below sp is at pc: JFR takes that one when it
//                answers, and pc for where it is. A pc in the stubs at the end of that frame's own
//                nmethod has no debug information: JFR then takes the frame's own
//   not null     sp is the frame pointer of an interpreted frame, whose method is below it. Whether
//                bcp is in that method JFR looks at when it answers, and if it is not, takes the
//                frame's own; where it is, that is where the frame is. 1 stands for a native method,
//                and for no other; one that is called for the first time has a bcp
//                (prepare_native_call, templateInterpreterGenerator_x86.cpp).
//                Of an interrupted frame it is the register's (old-bytecode: it is what the frame
//                had at its last call or poll)
//
// A bci is one of the method in the frame at sp, whatever was mutated.
//
// Compared with a walker that tells where frames are, of an unmutated victim. Further in there may be one frame, of
// an interpreted method that is entered or left just now (request-skips-frames). A request without a
// frame (biased) is wrong where the pc that JFR starts from, the anchor's or else the thread's own, is in
// compiled code of a method, anywhere; or in the interpreter, where its frame is whole and the call that the
// anchor is of has been made. In native code a thread has an anchor, and both are so. An anchor without a pc
// has it below its sp (build_from_ljf, jfrSampleRequest.cpp).
#include <cstdio>

#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/oracle.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

class RequestOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (applies(view)) out->add(FurtherWalk::by_witness(view));
  }

  void check(const WalkView& view, Further& further, Violations* out) override {
    if (is_biased_in_a_method(view)) {
      out->broken("biased-in-a-method", "the thread is in " + starting_code(view)->name);
    }
    check_bytecode(view, out);
    if (!applies(view)) return;
    const WalkRecord* const walk = further.make(FurtherWalk::by_witness(view));
    if (walk == nullptr || walk->result <= 0) return;
    const Frame request = view.frame(0);
    const bool interpreted = request.bcp != 0;
    const auto count = walk->frame_count();
    size_t i = 0;
    // An interpreted frame's sp is below its frame pointer.
    const auto passed = [&](size_t at) {
      return interpreted ? at + 1 < count && frame_of(*walk, at + 1).sp <= request.sp
                         : frame_of(*walk, at).sp < request.sp;
    };
    while (i < count && passed(i)) ++i;
    if (i == count || (i + 1 == count && walk->result == walk->depth)) {
      if (i == count && walk->stopped() == nullptr && walk->result < walk->depth) {
        report(view, request, "is above all frames", out);
      }
      return;
    }
    const Frame frame = frame_of(*walk, i);
    if (skips_frames(view, *walk, i)) {
      out->broken("request-skips-frames",
                  "the request is of a frame further out than the innermost");
    }
    if (!interpreted) {
      if (frame.pc != request.pc && !in_stubs_of(view, frame.pc, request.pc)) {
        report(view, request, "is not where the frame at sp is", out);
      }
      return;
    }
    const bool is_interrupted = i == 0 && frame.pc == view.subject.victim->pc;
    const bool is_interpreted =
        !is_machine(frame.type) && frame.type != FrameType::inlined && frame.tier == 0;
    if (!is_interpreted || frame.sp > request.sp) {
      report(view, request, "is of no interpreted frame", out);
    } else if (frame.method != nullptr && method_at(view, request.sp) != frame.method) {
      report(view, request, "is not at its frame's pointer", out);
    } else if (request.bcp == kBcpOfNative && frame.type != FrameType::native &&
               !(is_interrupted && is_by_java_sampler(view) && has_no_bytecode(view))) {
      report(view, request, "says that its method is native", out);
    } else if (request.bci >= 0 && frame.bci >= 0 && request.bci != frame.bci) {
      const std::string bci = std::to_string(request.bci);
      const std::string its = std::to_string(frame.bci);
      if (is_interrupted && !is_by_java_sampler(view)) {
        out->broken("old-bytecode", "the request has bci " + bci + ", the thread is at " + its);
      } else {
        report(view, request, "has bci " + bci + ", its frame " + its, out);
      }
    }
  }

 private:
  static constexpr uintptr_t kBcpOfNative = 1;  // build_for_interpreter, jfrSampleRequest.cpp
  // Words from an interpreted frame's pointer to its method (frame_x86.hpp).
  static constexpr uintptr_t kMethodBelow = 3;

  // Whether it can be the pointer of a frame of the thread's.
  static bool has_method_slot(const WalkView& view, uintptr_t frame_pointer) {
    const Victim& victim = *view.subject.victim;
    return frame_pointer % sizeof(uintptr_t) == 0 && frame_pointer <= victim.stack_base &&
           frame_pointer - kMethodBelow * sizeof(uintptr_t) >= victim.sp;
  }

  // Of the interpreted frame with that pointer. Null: there is none.
  static jmethodID method_at(const WalkView& view, uintptr_t frame_pointer) {
    if (!has_method_slot(view, frame_pointer)) return nullptr;
    const auto* const slot = reinterpret_cast<void* const*>(frame_pointer) - kMethodBelow;
    return Jvm::get().methods().id_of(*slot);  // it may have to learn new ones
  }

  // Whatever was mutated: a request has a bci only of the method that is in its frame.
  static void check_bytecode(const WalkView& view, Violations* out) {
    if (view.subject.walker->layout().bcp < 0 || view.record.end != WalkEnd::returned ||
        view.record.frame_count() != 1) {
      return;
    }
    const Frame request = view.frame(0);
    if (request.bci < 0 || !has_method_slot(view, request.sp)) return;
    const jmethodID id = method_at(view, request.sp);
    const MethodInfo* const info = id == nullptr ? nullptr : view.subject.methods->find(id);
    if (info == nullptr || request.bci > info->last_bci) {
      out->broken(
          "bytecode-of-no-method",
          "the request has bci " + std::to_string(request.bci) + ", and its frame " +
              (info == nullptr ? "no method"
                               : info->name + " ends with " + std::to_string(info->last_bci)));
    }
  }

  // Whether a Java frame that stands is further in than that at `index`.
  static bool skips_frames(const WalkView& view, const WalkRecord& walk, size_t index) {
    const CodeEntry* const code = view.subject.jvm->code_map().find(view.subject.victim->pc);
    const bool stands = view.frame_stands() && !is_entered_or_left(*code);
    size_t partly = 0;
    for (size_t i = 0; i < index; ++i) {
      const Frame frame = frame_of(walk, i);
      if (is_machine(frame.type)) continue;
      const bool is_interpreted = frame.type == FrameType::native || frame.tier == 0;
      if (!is_interpreted || stands || ++partly > 1) return true;
    }
    return false;
  }

  // The sampler that reads the register takes a method for native while it is null, and when it answers looks at the
  // method.
  static bool has_no_bytecode(const WalkView& view) {
    return get_bytecode_pointer(view.subject.victim->context_copy) == 0;
  }

  static bool is_by_java_sampler(const WalkView& view) {
    return (view.record.options & kJavaSampler) != 0;
  }

  static bool is_plain_request(const WalkView& view) {
    return view.subject.unmutated && view.subject.walker->layout().bcp >= 0 &&
           view.record.end == WalkEnd::returned;
  }

  static bool applies(const WalkView& view) {
    return is_plain_request(view) && view.record.frame_count() == 1 &&
           kWitness.walks_in(view.subject.input->mode);
  }

  static bool is_biased_in_a_method(const WalkView& view) {
    const WalkRecord& record = view.record;
    const bool in_native = record.thread_state == kThreadInNative;
    if (!is_plain_request(view) || record.result != 0 || record.depth <= 0 ||
        (record.thread_state != kThreadInJava && !in_native) ||
        (in_native && sp_of_anchor(view) == 0)) {
      return false;
    }
    const CodeEntry* const code = starting_code(view);
    if (code == nullptr) return false;
    if (code->kind == CodeKind::nmethod) return true;
    return code->kind == CodeKind::codelet && has_called(view) &&
           (in_native || !may_give_none(*code));
  }

  // The interpreter's anchor may be there before its call is.
  static bool has_called(const WalkView& view) {
    const uintptr_t anchor_sp = sp_of_anchor(view);
    return anchor_sp == 0 || view.subject.victim->sp < anchor_sp;
  }

  // The name of native methods' entries is another one since JDK 21.
  static bool is_entered_or_left(const CodeEntry& codelet) {
    return may_be_partly_there(codelet) || codelet.name.starts_with("native method entry point");
  }

  // Where the interpreter takes a frame down, or moves it to compiled code at a branch, it is in JFR's
  // critical section (enter_jfr_critical_section, interp_masm_x86.cpp): JFR then gives none of its frames.
  static bool may_give_none(const CodeEntry& codelet) {
    const auto begins = [&](std::string_view name) { return codelet.name.starts_with(name); };
    return is_entered_or_left(codelet) || begins("exception handling") ||
           begins("earlyret entry points") || begins("if") || begins("goto") || begins("jsr");
  }

  static uintptr_t sp_of_anchor(const WalkView& view) {
    return view.subject.victim->last_java_sp(view.subject.jvm->layout());
  }

  // Null: of no method.
  static const CodeEntry* starting_code(const WalkView& view) {
    const Victim& victim = *view.subject.victim;
    const uintptr_t anchor_sp = sp_of_anchor(view);
    uintptr_t pc = anchor_sp != 0 ? view.record.last_java_pc : victim.pc;
    // Below the thread's sp there are the walk's own frames.
    if (pc == 0 && has_called(view) && anchor_sp <= victim.stack_base &&
        anchor_sp % sizeof(uintptr_t) == 0) {
      pc = *reinterpret_cast<const uintptr_t*>(anchor_sp - sizeof(uintptr_t));
    }
    return view.subject.jvm->code_map().find(pc);
  }

  static Frame frame_of(const WalkRecord& walk, size_t index) {
    return read_frame(kWitness.layout, walk.frames, index);
  }

  // Whether `pc` is in the stubs of the nmethod that `called_from` is in: a call of compiled code to an
  // interpreted method goes through one there, and its return address is on the stack by then.
  static bool in_stubs_of(const WalkView& view, uintptr_t called_from, uintptr_t pc) {
    const CodeEntry* const code = view.subject.jvm->code_map().find(pc);
    return code != nullptr && code->stubs != 0 && pc >= code->stubs &&
           code == view.subject.jvm->code_map().find(called_from);
  }

  static void report(const WalkView& view, const Frame& request, const std::string& what,
                     Violations* out) {
    const Victim& victim = *view.subject.victim;
    const CodeEntry* const code = view.subject.jvm->code_map().find(request.pc);
    char place[64];
    std::snprintf(place, sizeof place, "%s, sp %+ld from the thread's, ",
                  request.bcp == 0 ? "compiled" : "interpreted",
                  static_cast<long>(request.sp - victim.sp));
    out->add(FindingKind::contract, "request-of-no-frame",
             "the request (" + std::string(place) + "in " +
                 (code == nullptr ? "no known code" : code->name) + ") " + what);
  }
};

const RegisteredOracle<RequestOracle> kRegistered({.name = "request",
                                                   .order = 115,
                                                   .needs = {Need::further_walks, Need::trace},
                                                   .ask = &RequestOracle::ask});

}  // namespace
}  // namespace framestorm
