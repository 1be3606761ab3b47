// A walk calls nothing that is not async-signal-safe, and keeps no lock.
#include <algorithm>
#include <span>
#include <string_view>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

class SignalSafetyOracle final : public Oracle {
 public:
  static bool suspects(const WalkView& view) { return view.record.incidents->unsafe.count > 0; }

  void check(const WalkView& view, Further&, Violations* out) override {
    const UnsafeCalls& unsafe = view.record.incidents->unsafe;
    const std::span calls =
        std::span(unsafe.calls).first(std::min<size_t>(unsafe.count, kMaxUnsafeCalls));
    for (const UnsafeCall& call : calls) {
      out->add(FindingKind::unsafe_call, call.function,
               std::string(call.function) + " called during the walk (" +
                   std::to_string(unsafe.count) + " unsafe calls in all)",
               place_of(call));
    }
    // What a walker that has contained a fault left behind is oracle `memory`'s.
    if (unsafe.locks_held == 0 || view.record.incidents->contained.count > 0) return;
    const auto taken = std::ranges::find_if(calls, &takes_a_lock);
    FaultRecord where = taken == calls.end() ? FaultRecord() : place_of(*taken);
    where.locks_held = unsafe.locks_held;
    out->add(FindingKind::contract, "lock-held",
             "the walk returned and kept " + std::to_string(unsafe.locks_held) +
                 " pthread locks: whoever wants them next waits for ever",
             where);
  }

 private:
  static FaultRecord place_of(const UnsafeCall& call) {
    FaultRecord where = place_with({call.stack, call.stack_size});
    where.function = call.function;
    return where;
  }
  static bool takes_a_lock(const UnsafeCall& call) {
    const std::string_view function = call.function;
    return function.ends_with("lock") && !function.ends_with("unlock");
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
