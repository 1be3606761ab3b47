#include "harness/input/random_input.h"

#include <limits>

#include "harness/input/canonical.h"

namespace framestorm {
namespace {

template <typename Enum>
Enum any(TestRng& rng) {
  return static_cast<Enum>(rng() % static_cast<uint64_t>(Enum::count));
}

bool chance(TestRng& rng, unsigned one_in) { return rng() % one_in == 0; }

// Extremes, or a number of any magnitude.
template <typename Int>
Int number(TestRng& rng) {
  switch (rng() % 8) {
    case 0:
      return 0;
    case 1:
      return std::numeric_limits<Int>::max();
    case 2:
      return std::numeric_limits<Int>::min();
    default:
      return static_cast<Int>(static_cast<Int>(rng()) >> (rng() % (8 * sizeof(Int))));
  }
}

CodeRef random_code(TestRng& rng) {
  CodeRef code;
  code.kind = any<CodeKind>(rng);
  code.tier = static_cast<uint8_t>(rng() % 5);
  code.anchor = any<CodeAnchor>(rng);
  const size_t length = chance(rng, 8) ? kMaxSymbolName : rng() % 30;
  while (code.name.size() < length) {
    const char c = static_cast<char>(' ' + rng() % 95);
    if (is_symbol_char(c)) {
      code.name += c;
    }
  }
  return code;
}

}  // namespace

Mutation random_mutation(TestRng& rng) {
  Mutation mutation;
  mutation.kind = any<MutationKind>(rng);
  mutation.reg = any<Register>(rng);
  mutation.anchor = any<StackAnchor>(rng);
  mutation.offset = number<int16_t>(rng);
  mutation.field = any<ThreadField>(rng);
  mutation.value.kind = any<ValueKind>(rng);
  mutation.value.delta = number<int32_t>(rng);
  mutation.value.index = number<uint16_t>(rng);
  mutation.value.raw = number<uint64_t>(rng);
  mutation.value.code = random_code(rng);
  canonicalise(&mutation);
  return mutation;
}

Input random_input(TestRng& rng) {
  Input input;
  input.scenario = any<ScenarioId>(rng);
  input.mode = any<Mode>(rng);
  input.walker = any<WalkerId>(rng);
  input.halt.any = chance(rng, 2);
  input.halt.code = random_code(rng);
  input.halt.delta = number<int32_t>(rng);
  input.halt.has_frame_offset = chance(rng, 2);
  input.halt.frame_offset = number<uint32_t>(rng);
  if (chance(rng, 4)) input.halt.occurrence = number<uint32_t>(rng);
  input.halt.event = any<StepEvent>(rng);
  input.call.depth = any<DepthKind>(rng);
  input.call.raw_depth = number<int32_t>(rng);
  input.call.context = any<ContextArg>(rng);
  input.call.env = any<EnvArg>(rng);
  input.call.options = number<uint32_t>(rng);
  input.call.accepted_kinds = number<uint8_t>(rng);
  input.call.accepted_states = number<uint32_t>(rng);
  for (size_t count = rng() % (kMaxIteratorCalls + 1); count > 0 && chance(rng, 2); --count) {
    input.iterator_calls.push_back(
        {any<IteratorCallKind>(rng), static_cast<uint8_t>(rng() % (kMaxIteratorArgument + 1))});
  }
  for (size_t count = rng() % (kMaxQueueCalls + 1); count > 0 && chance(rng, 2); --count) {
    input.queue_calls.push_back(
        {any<QueueCallKind>(rng), static_cast<uint8_t>(rng() % (kMaxIteratorArgument + 1))});
  }
  for (size_t count = rng() % (kMaxMutations + 1); count > 0; --count) {
    input.mutations.push_back(random_mutation(rng));
  }
  canonicalise(&input);
  return input;
}

}  // namespace framestorm
