#include "stress/agent/sample_input.h"

#include <algorithm>
#include <optional>

#include "harness/input/thread_state.h"
#include "harness/victim/context.h"

namespace framestorm::stress {
namespace {

// How far from the real sp a stack address still means something on another stack.
constexpr int64_t kNear = int64_t{64} << 10;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

ScenarioId scenario_of(const Sample& sample, const CodeEntry* top) {
  const uint32_t state = sample.walk.thread_state;
  if (state == kThreadInNative || state == kThreadInNative + 1) return ScenarioId::native_method;
  if (state >= kThreadBlocked) return ScenarioId::parked;
  if (!is_in_java(state) || top == nullptr) return ScenarioId::vm_call;
  if (top->kind == CodeKind::codelet || has(top->name, "Interpreter")) {
    return ScenarioId::interpreted_recursion;
  }
  if (top->kind == CodeKind::nmethod) {
    if (top->name == "java/lang/String.compareTo") return ScenarioId::string_compare;
    if (top->name == "java/lang/String.indexOf") return ScenarioId::string_search;
    return top->tier == 4 ? ScenarioId::c2_inlined : ScenarioId::c1;
  }
  if (has(top->name, "arraycopy")) return ScenarioId::arraycopy;
  if (has(top->name, "vtable")) return ScenarioId::vtable_dispatch;
  if (has(top->name, "itable")) return ScenarioId::itable_dispatch;
  if (has(top->name, "sha") || has(top->name, "md5")) return ScenarioId::digest;
  if (has(top->name, "adapters")) return ScenarioId::adapters;
  if (has(top->name, "xception")) return ScenarioId::exception_unwind;
  return ScenarioId::c2_inlined;
}

// The same place on a victim's stack or in any JVM's code; nothing for what is only here.
std::optional<SymbolicValue> symbolic(uintptr_t value, const Sample& sample, const CodeMap& code) {
  SymbolicValue result;
  if (value >= sample.stack_end && value < sample.stack_base) {
    const auto delta = static_cast<int64_t>(value - sample.sp());
    if (delta < -kNear || delta > kNear) return std::nullopt;
    result.kind = ValueKind::real_sp;
    result.delta = static_cast<int32_t>(delta);
    return result;
  }
  const CodeEntry* const entry = code.find(value);
  if (entry == nullptr || entry->kind == CodeKind::nmethod) return std::nullopt;
  result.kind = ValueKind::code;
  result.code.kind = entry->kind;
  result.code.name = entry->name;
  result.delta = static_cast<int32_t>(value - entry->begin);
  return result;
}

}  // namespace

Input input_of(const Sample& sample, std::span<const std::byte> stack, const CodeMap& code,
               SamplingMode mode) {
  Input input;
  input.scenario = scenario_of(sample, code.find(sample.pc()));
  input.mode = input_mode(mode);
  input.walker = sample.walk.walker;
  input.call.depth = DepthKind::raw;
  input.call.raw_depth = sample.walk.depth;
  input.call.options = sample.walk.options;
  const auto add = [&](Mutation mutation, uintptr_t value) {
    if (input.mutations.size() == kMaxMutations) return;
    const auto symbol = symbolic(value, sample, code);
    if (!symbol) return;
    mutation.value = *symbol;
    input.mutations.push_back(std::move(mutation));
  };
  add({.kind = MutationKind::set_register, .reg = Register::pc}, sample.pc());
  add({.kind = MutationKind::set_register, .reg = Register::fp}, sample.fp());
  if (sample.last_java_sp != 0) {
    add({.kind = MutationKind::set_thread_field, .field = ThreadField::last_java_sp},
        sample.last_java_sp);
    add({.kind = MutationKind::set_thread_field, .field = ThreadField::last_java_pc},
        sample.last_java_pc);
    add({.kind = MutationKind::set_thread_field, .field = ThreadField::last_java_fp},
        sample.last_java_fp);
  }
  constexpr size_t kWords = 64;
  for (size_t i = 0; i < std::min(kWords, stack.size() / sizeof(uintptr_t)); ++i) {
    add({.kind = MutationKind::set_stack_word,
         .anchor = StackAnchor::sp,
         .offset = static_cast<int16_t>(i)},
        read_at<uintptr_t>(stack.data(), i * sizeof(uintptr_t)));
  }
  return input;
}

}  // namespace framestorm::stress
