// Oracle 3: a walk calls nothing that is not async-signal-safe.
#include <algorithm>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class SignalSafetyOracle final : public Oracle {
 public:
  std::string_view name() const override { return "signal-safety"; }
  bool judges_rewalks() const override { return true; }

  void check(const WalkView& view, Rewalk&, Violations* out) override {
    const UnsafeCalls& unsafe = *view.unsafe;
    for (uint32_t i = 0; i < std::min<uint32_t>(unsafe.count, kMaxUnsafeCalls); ++i) {
      const UnsafeCall& call = unsafe.calls[i];
      FaultRecord where;
      where.stack_size = std::min<uint32_t>(call.stack_size, kMaxStack);
      std::copy_n(call.stack, where.stack_size, where.stack);
      if (where.stack_size > 0) where.pc = where.stack[0];
      where.function = call.function;
      out->add(FindingKind::unsafe_call, call.function,
               std::string(call.function) + " called during the walk (" +
                   std::to_string(unsafe.count) + " unsafe calls in all)",
               where);
    }
  }
};

}  // namespace

std::unique_ptr<Oracle> make_signal_safety_oracle() {
  return std::make_unique<SignalSafetyOracle>();
}

}  // namespace framestorm
