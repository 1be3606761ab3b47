#include "harness/input/state.h"

#include <algorithm>

#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

constexpr int64_t kNear = int64_t{64} << 10;  // bytes of stack
constexpr int64_t kNearCode = int64_t{4} << 10;
constexpr int64_t kWord = 8;

StateKind torn_if(bool condition) { return condition ? StateKind::torn : StateKind::corrupt; }

// Bytes from sp up to the stack's base, as far as they are known to be the thread's.
int64_t used_above_sp(const Input& input) {
  return input.halt.has_frame_offset ? int64_t{input.halt.frame_offset} : kNear;
}

bool is_on_own_stack(const Input& input, int64_t from_sp) {
  return from_sp % kWord == 0 && from_sp >= -kNear && from_sp < used_above_sp(input);
}

bool is_near_in_code(int64_t delta) { return delta > -kNearCode && delta < kNearCode; }

bool is_executed_by_victim(const Input& input, const SymbolicValue& value) {
  if (input.halt.any) return false;
  const CodeRef& code = value.code;
  const CodeRef& at = input.halt.code;
  const bool same = code.kind == at.kind && (code.kind == CodeKind::codelet ||
                                             (code.name == at.name && code.tier == at.tier));
  const bool inside = code.anchor == CodeAnchor::end ? value.delta < 0 : value.delta >= 0;
  return same && inside && is_near_in_code(value.delta);
}

bool is_anchor(const Mutation& mutation) {
  return mutation.kind == MutationKind::set_thread_field && mutation.field != ThreadField::state;
}

bool holds_code(const Mutation& mutation) {
  return (mutation.kind == MutationKind::set_register && mutation.reg == Register::pc) ||
         (is_anchor(mutation) && mutation.field == ThreadField::last_java_pc);
}

bool holds_stack_address(const Mutation& mutation) {
  return (mutation.kind == MutationKind::set_register &&
          (mutation.reg == Register::sp || mutation.reg == Register::fp)) ||
         (is_anchor(mutation) && mutation.field != ThreadField::last_java_pc);
}

StateKind state_of_thread_state(const SymbolicValue& value) {
  return torn_if(value.kind == ValueKind::raw &&
                 is_legal_thread_state(static_cast<uint32_t>(value.raw)));
}

StateKind state_of(const Input& input, const Mutation& mutation) {
  const SymbolicValue& value = mutation.value;
  if (value.kind == ValueKind::real && value.delta == 0) return StateKind::real;
  if (mutation.kind == MutationKind::set_thread_field && mutation.field == ThreadField::state) {
    return state_of_thread_state(value);
  }
  switch (value.kind) {
    case ValueKind::real:
      return torn_if((holds_stack_address(mutation) && is_on_own_stack(input, value.delta)) ||
                     (holds_code(mutation) && is_near_in_code(value.delta)));
    case ValueKind::real_sp:
    case ValueKind::real_fp:
      return torn_if(is_on_own_stack(input, value.delta));
    case ValueKind::real_pc:
      return torn_if(is_near_in_code(value.delta));
    case ValueKind::stack_base:
      return torn_if(value.delta < 0 && value.delta % kWord == 0 &&
                     -int64_t{value.delta} <= used_above_sp(input));
    case ValueKind::slot:
      return torn_if(value.delta == 0 && is_on_own_stack(input, kWord * value.index));
    case ValueKind::code:
      return torn_if(is_executed_by_victim(input, value));
    case ValueKind::raw:
      return torn_if(value.raw == 0 && is_anchor(mutation));
    default:
      return StateKind::corrupt;
  }
}

bool is_call_of_a_profiler(const Input& input) {
  const CallArgs& call = input.call;
  const bool positive =
      call.depth != DepthKind::zero && !(call.depth == DepthKind::raw && call.raw_depth <= 0);
  return positive && call.context == ContextArg::victim && call.env == EnvArg::victim &&
         (call.options & ~traits_of(input.walker).options) == 0 &&
         std::ranges::none_of(input.iterator_calls,
                              [](const IteratorCall& one) {
                                return one.kind == IteratorCallKind::next_null ||
                                       one.kind == IteratorCallKind::open_null ||
                                       one.kind == IteratorCallKind::select;
                              }) &&
         std::ranges::none_of(input.queue_calls, [](const QueueCall& one) {
           return one.kind == QueueCallKind::select || one.kind == QueueCallKind::select_mark ||
                  one.kind == QueueCallKind::no_memory;
         });
}

}  // namespace

std::string_view name_of(StateKind kind) {
  constexpr std::string_view kNames[] = {"real", "torn", "corrupt"};
  return name_in(kNames, kind);
}

StateKind state_of(const Input& input) {
  if (!is_call_of_a_profiler(input)) return StateKind::corrupt;
  StateKind worst = StateKind::real;
  for (const Mutation& mutation : input.mutations) {
    worst = std::max(worst, state_of(input, mutation));
  }
  return worst;
}

}  // namespace framestorm
