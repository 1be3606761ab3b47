#include "harness/executor/minimizer.h"

namespace framestorm {
namespace {

class Minimizer {
 public:
  Minimizer(const Input& input, const std::function<bool(const Input&)>& still_fails,
            uint32_t budget)
      : best_(input), still_fails_(still_fails), budget_(budget) {}

  Input run() {
    bool shrunk = true;
    while (shrunk && budget_ > 0) {
      shrunk = drop_mutations();
      shrunk = reset_call() || shrunk;
      shrunk = drop_calls(&Input::iterator_calls) || shrunk;
      shrunk = drop_calls(&Input::queue_calls) || shrunk;
      shrunk = simplify_values() || shrunk;
    }
    return best_;
  }

 private:
  bool keep_if_fails(const Input& candidate) {
    if (candidate == best_ || budget_ == 0) return false;
    --budget_;
    if (!still_fails_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  bool drop_mutations() {
    bool shrunk = false;
    for (size_t i = best_.mutations.size(); i-- > 0;) {
      Input candidate = best_;
      candidate.mutations.erase(candidate.mutations.begin() + static_cast<ptrdiff_t>(i));
      shrunk = keep_if_fails(candidate) || shrunk;
    }
    return shrunk;
  }

  bool reset_call() {
    bool shrunk = false;
    const CallArgs plain;
    const auto reset = [&](auto CallArgs::* field) {
      Input candidate = best_;
      candidate.call.*field = plain.*field;
      shrunk = keep_if_fails(candidate) || shrunk;
    };
    reset(&CallArgs::context);
    reset(&CallArgs::env);
    reset(&CallArgs::options);
    reset(&CallArgs::accepted_kinds);
    reset(&CallArgs::accepted_states);
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
      if ((best_.call.options & bit) == 0) continue;
      Input candidate = best_;
      candidate.call.options &= ~bit;
      shrunk = keep_if_fails(candidate) || shrunk;
    }
    Input candidate = best_;
    candidate.call.depth = plain.depth;
    candidate.call.raw_depth = plain.raw_depth;
    return keep_if_fails(candidate) || shrunk;
  }

  template <typename Call>
  bool drop_calls(std::vector<Call> Input::* calls) {
    if ((best_.*calls).empty()) return false;
    Input candidate = best_;
    (candidate.*calls).clear();
    bool shrunk = keep_if_fails(candidate);
    for (size_t i = (best_.*calls).size(); i-- > 0;) {
      candidate = best_;
      (candidate.*calls).erase((candidate.*calls).begin() + static_cast<ptrdiff_t>(i));
      shrunk = keep_if_fails(candidate) || shrunk;
    }
    for (size_t i = 0; i < (best_.*calls).size(); ++i) {
      candidate = best_;
      (candidate.*calls)[i].argument = 0;
      shrunk = keep_if_fails(candidate) || shrunk;
    }
    return shrunk;
  }

  // Values that say less: no delta, then halves of it; the first index.
  bool simplify_values() {
    bool shrunk = false;
    for (size_t i = 0; i < best_.mutations.size(); ++i) {
      const auto attempt = [&](auto change) {
        Input candidate = best_;
        change(candidate.mutations[i].value);
        shrunk = keep_if_fails(candidate) || shrunk;
      };
      attempt([](SymbolicValue& v) { v.delta = 0; });
      attempt([](SymbolicValue& v) { v.delta = v.delta / 2 / 8 * 8; });
      attempt([](SymbolicValue& v) { v.index = 0; });
      if (best_.mutations[i].value.kind == ValueKind::raw) {
        attempt([](SymbolicValue& v) { v.raw = 0; });
      }
    }
    return shrunk;
  }

  Input best_;
  const std::function<bool(const Input&)>& still_fails_;
  uint32_t budget_;
};

}  // namespace

Input minimize(const Input& input, const std::function<bool(const Input&)>& still_fails,
               uint32_t budget) {
  return Minimizer(input, still_fails, budget).run();
}

}  // namespace framestorm
