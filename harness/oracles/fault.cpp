// Oracle 1: a walk returns, without a fault and within its limit.
#include <cstring>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

constexpr std::string_view kAsan = sanitizer::kTerminalCall;
constexpr std::string_view kContained = "contained";

class FaultOracle final : public Oracle {
 public:
  std::string_view name() const override { return "fault"; }
  bool judges_rewalks() const override { return true; }

  void check(const WalkView& view, Rewalk&, Violations* out) override {
    switch (view.end) {
      case WalkEnd::returned:
        check_contained(view, out);
        return;
      case WalkEnd::count:
        return;
      case WalkEnd::fault: {
        // A write past the caller's array is told apart from a crash of the walker's own reading,
        // which may hit that page by chance.
        const bool past_frames =
            view.fault->is_write && view.buffer->in_upper_guard(view.fault->address);
        out->add(past_frames ? FindingKind::contract : FindingKind::fault,
                 past_frames ? "writes-past-frames" : "",
                 past_frames
                     ? "write to frames[depth] or beyond, depth " + std::to_string(view.depth)
                     : std::string(strsignal(view.fault->signo)) + " inside the walk",
                 *view.fault);
        return;
      }
      case WalkEnd::hang:
        // Thousands of reports take their time; they are findings already.
        if (view.reports->count > 0) return;
        out->add(FindingKind::hang, "", "the walk exceeded its time limit", *view.fault);
        return;
      case WalkEnd::terminal_call:
        // The report that ASan ended the process with is a finding already.
        if (view.reports->count > 0 && std::string_view(view.fault->function) == kAsan) return;
        out->add(FindingKind::terminal_call, view.fault->function,
                 std::string("the walk called ") + view.fault->function +
                     ", which would have ended the process or printed",
                 *view.fault);
        return;
      case WalkEnd::vm_error:
        if (is_callers_mistake(view)) return;
        out->add(FindingKind::vm_error, view.fault->error, view.fault->error_detail, *view.fault);
        return;
    }
  }

 private:
  // A debug VM's answer to another thread's JNIEnv: whose walk it is has to be said right
  // (prims/forte.cpp, "must be called by the current interrupted thread").
  static bool is_callers_mistake(const WalkView& view) {
    return view.input->call.env == EnvArg::other_victim &&
           std::string_view(view.fault->error).find("trace->env_id") != std::string_view::npos;
  }

  // A fault that the VM contained by itself is a fault all the same. The guard has seen it pass.
  static void check_contained(const WalkView& view, Violations* out) {
    const WalkFacts* facts = view.walker->facts();
    const bool told = view.result == view.walker->contained_error();
    const bool counted = facts != nullptr && facts->contained_faults > 0;
    if (told || counted || view.fault->end == WalkEnd::fault) {
      out->add(FindingKind::fault, kContained, "a fault inside the walk, contained by the VM",
               *view.fault);
    }
    if (told != counted) {
      out->add(FindingKind::contract, "contained-fault-untold",
               told ? "the VM told of a contained fault and did not count it"
                    : "the VM contained a fault and returned " + std::to_string(view.result));
    }
  }
};

}  // namespace

std::unique_ptr<Oracle> make_fault_oracle() { return std::make_unique<FaultOracle>(); }

}  // namespace framestorm
