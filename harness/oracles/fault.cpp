// A walk returns, without a fault and within its limit.
#include <cstring>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

constexpr std::string_view kAsan = sanitizer::kTerminalCall;
constexpr std::string_view kContained = "contained";

class FaultOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) {
    return view.record.end != WalkEnd::returned || contained(view).any();
  }

  void check(const WalkView& view, Further&, Violations* out) override {
    const Incidents& incidents = *view.record.incidents;
    switch (view.record.end) {
      case WalkEnd::returned:
        check_contained(view, out);
        return;
      case WalkEnd::count:
        return;
      case WalkEnd::fault: {
        // A write past the caller's array is told apart from a crash of the walker's own reading,
        // which may hit that page by chance.
        const bool past_frames = incidents.fault.is_write && view.record.buffer != nullptr &&
                                 view.record.buffer->in_upper_guard(incidents.fault.address);
        out->add(past_frames ? FindingKind::contract : FindingKind::fault,
                 past_frames ? "writes-past-frames" : "",
                 past_frames ? "write to frames[depth] or beyond, depth " +
                                   std::to_string(view.record.depth)
                             : std::string(strsignal(incidents.fault.signo)) + " inside the walk",
                 incidents.fault);
        return;
      }
      case WalkEnd::hang:
        // Thousands of reports take their time; they are findings already.
        if (incidents.reports.count > 0) return;
        out->add(FindingKind::hang, "", "the walk exceeded its time limit", incidents.fault);
        return;
      case WalkEnd::terminal_call:
        // The report that ASan ended the process with is a finding already.
        if (incidents.reports.count > 0 && std::string_view(incidents.fault.function) == kAsan)
          return;
        out->add(FindingKind::terminal_call, incidents.fault.function,
                 std::string("the walk called ") + incidents.fault.function +
                     ", which would have ended the process or printed",
                 incidents.fault);
        return;
      case WalkEnd::vm_error:
        if (is_callers_mistake(view)) return;
        out->add(FindingKind::vm_error, incidents.fault.error, incidents.fault.error_detail,
                 incidents.fault);
        return;
    }
  }

 private:
  // A debug VM's answer to another thread's JNIEnv: whose walk it is has to be said right
  // (prims/forte.cpp, "must be called by the current interrupted thread").
  static bool is_callers_mistake(const WalkView& view) {
    return view.subject.input->call.env == EnvArg::other_victim &&
           std::string_view(view.record.incidents->fault.error).find("trace->env_id") !=
               std::string_view::npos;
  }

  // A fault that the VM contained by itself is a fault all the same.
  struct Contained {
    bool told = false;     // by the result
    bool counted = false;  // by the VM
    bool seen = false;     // by the guard
    bool any() const { return told || counted || seen; }
  };
  static Contained contained(const WalkView& view) {
    const WalkFacts* const facts = view.record.facts_if_any();
    return {.told = view.record.result == view.subject.walker->traits().contained_error,
            .counted = facts != nullptr && facts->contained_faults > 0,
            .seen = view.record.incidents->fault.end == WalkEnd::fault};
  }

  static void check_contained(const WalkView& view, Violations* out) {
    const Contained fault = contained(view);
    if (fault.any()) {
      out->add(FindingKind::fault, kContained, "a fault inside the walk, contained by the VM",
               view.record.incidents->fault);
    }
    if (fault.told != fault.counted) {
      out->broken("contained-fault-untold",
                  fault.told ? "the VM told of a contained fault and did not count it"
                             : "the VM contained a fault and returned " +
                                   std::to_string(view.record.result));
    }
  }
};

const RegisteredOracle<FaultOracle> kRegistered({.name = "fault",
                                                 .order = 10,
                                                 .needs = {Need::incidents},
                                                 .judges_further = true,
                                                 .suspects = &FaultOracle::suspects});

}  // namespace
}  // namespace framestorm
