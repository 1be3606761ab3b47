// A walk calls nothing that is not async-signal-safe.
#include <algorithm>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class SignalSafetyOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) { return view.record.incidents->unsafe.count > 0; }

  void check(const WalkView& view, Further&, Violations* out) override {
    const UnsafeCalls& unsafe = view.record.incidents->unsafe;
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

const RegisteredOracle<SignalSafetyOracle> kRegistered({.name = "signal-safety",
                                                        .order = 40,
                                                        .needs = {Need::incidents,
                                                                  Need::unsafe_calls},
                                                        .judges_further = true,
                                                        .suspects = &SignalSafetyOracle::suspects});

}  // namespace
}  // namespace framestorm
