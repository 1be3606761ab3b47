// Oracle 4: the trace is one that the API's documentation allows.
#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class ContractOracle final : public Oracle {
 public:
  std::string_view name() const override { return "contract"; }

  void check(const WalkView& view, Rewalk&, Violations* out) override {
    if (view.end != WalkEnd::returned) return;
    if (view.result <= 0) {
      check_error(view, out);
      return;
    }
    if (view.result > view.depth) {
      out->add(FindingKind::contract, "count-exceeds-depth",
               std::to_string(view.result) + " frames for depth " + std::to_string(view.depth));
      return;  // frames beyond depth are not ours to read
    }
    check_frames(view, out);
  }

 private:
  static void check_error(const WalkView& view, Violations* out) {
    if (!view.walker->documented_error(view.result)) {
      out->add(FindingKind::contract, "undocumented-error",
               "result " + std::to_string(view.result) + " is not documented");
    } else if (view.victim->is_java_thread &&
               !view.walker->error_agrees(view.result, view.thread_state)) {
      out->add(FindingKind::contract, "error-disagrees-with-state",
               "result " + std::to_string(view.result) + " (" +
                   std::string(view.walker->error_name(view.result)) + ") in thread state " +
                   std::to_string(view.thread_state));
    }
  }

  static void check_frames(const WalkView& view, Violations* out) {
    const FrameLayout& layout = view.walker->layout();
    jmethodID last_method = nullptr;
    const MethodInfo* info = nullptr;
    uintptr_t last_sp = 0;
    for (size_t i = 0; i < view.frame_count(); ++i) {
      const Frame frame = read_frame(layout, view.frames, i);
      if (layout.method >= 0 && frame.method != nullptr) {
        if (frame.method != last_method) {
          info = view.methods->find(frame.method);
          last_method = frame.method;
        }
        if (info == nullptr) {
          out->add(FindingKind::contract, "method-unresolved",
                   "frame " + std::to_string(i) + " has a jmethodID that no class has");
          return;
        }
        if (frame.bci < view.walker->lowest_bci() || frame.bci > std::max(info->last_bci, 0)) {
          out->add(FindingKind::contract, "bci-out-of-range",
                   "frame " + std::to_string(i) + " " + info->name + " has bci " +
                       std::to_string(frame.bci) + ", its last is " +
                       std::to_string(info->last_bci));
          return;
        }
      }
      if (layout.sp >= 0 && frame.sp != 0) {
        if (frame.sp <= last_sp) {
          out->add(FindingKind::contract, "sp-not-advancing",
                   "frame " + std::to_string(i) + " has an sp not above its callee's");
          return;
        }
        last_sp = frame.sp;
      }
    }
  }
};

}  // namespace

std::unique_ptr<Oracle> make_contract_oracle() { return std::make_unique<ContractOracle>(); }

}  // namespace framestorm
