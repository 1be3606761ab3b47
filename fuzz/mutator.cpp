#include "fuzz/mutator.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "fuzz/mutator_call.h"
#include "harness/input/canonical.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

constexpr size_t kUsualMutations = 4;
constexpr size_t kUsualCalls = 12;

template <typename Enum>
uint64_t bits_of(const std::vector<Enum>& values) {
  uint64_t bits = 0;
  for (const Enum value : values) {
    bits |= uint64_t{1} << static_cast<unsigned>(value);
  }
  return bits;
}

template <typename Enum>
bool has(uint64_t bits, Enum value) {
  return (bits >> static_cast<unsigned>(value) & 1U) != 0;
}

template <typename Enum>
Enum one_of(const std::vector<Enum>& values, Rng& rng) {
  return values[rng.below(values.size())];
}

// Legal Mutations: what the kind does not use is at its default.
bool same_place(const Mutation& a, const Mutation& b) {
  return a.kind == b.kind && a.reg == b.reg && a.anchor == b.anchor && a.offset == b.offset &&
         a.field == b.field;
}

Mutation* find_place(Input* input, const Mutation& place) {
  const auto found = std::ranges::find_if(
      input->mutations, [&place](const Mutation& other) { return same_place(other, place); });
  return found == input->mutations.end() ? nullptr : &*found;
}

bool is_overwritten(const Input& input, size_t index) {
  const auto rest = std::span(input.mutations).subspan(index + 1);
  return std::ranges::any_of(rest, [&place = input.mutations[index]](const Mutation& later) {
    return same_place(later, place);
  });
}

// Keeps the order: two places may be one address (sp + 3, fp - 2), then the last one applies.
void erase(Input* input, size_t index) {
  input->mutations.erase(input->mutations.begin() + static_cast<std::ptrdiff_t>(index));
}

Mutation& any_mutation(Input* input, Rng& rng) {
  return input->mutations[rng.below(input->mutations.size())];
}

// The mutation of that register, a new one when there is none yet.
Mutation& of_register(Input* input, Register reg) {
  Mutation place;
  place.reg = reg;
  Mutation* found = find_place(input, place);
  return found != nullptr ? *found : input->mutations.emplace_back(std::move(place));
}

void set(Input* input, Register reg, ValueKind kind, int32_t delta, uint16_t index = 0) {
  SymbolicValue& value = of_register(input, reg).value;
  value.kind = kind;
  value.delta = delta;
  value.index = index;
  canonicalise(&value);
}

// Words below the sp are free for signal handlers; above it stand the frames.
int16_t pick_word_offset(StackAnchor anchor, Rng& rng) {
  const auto near = static_cast<int32_t>(rng.below(size_t{2} << rng.below(6)));
  const auto low = static_cast<int32_t>(rng.below(16));
  switch (anchor) {
    case StackAnchor::sp:
      return static_cast<int16_t>(rng.one_in(16) ? -1 - low : near);
    case StackAnchor::fp:
      // Above fp: saved fp, return address. Below: slots of an interpreter frame.
      return static_cast<int16_t>(rng.one_in(2) ? low - 14 : near);
    case StackAnchor::stack_base:
      return static_cast<int16_t>(-1 - near);
    case StackAnchor::saved_anchor:
      return static_cast<int16_t>(rng.below(3));
    default:
      return static_cast<int16_t>(near - 2);
  }
}

}  // namespace

Mutator::Mutator(MutatorProfile profile, const CodeNames* names)
    : profile_(std::move(profile)),
      names_(names),
      scenarios_(bits_of(profile_.scenarios)),
      modes_(bits_of(profile_.modes)),
      walkers_(bits_of(profile_.walkers)) {
  const std::string target(profile_.target);
  if (scenarios_ == 0 || modes_ == 0 || walkers_ == 0) {
    throw std::invalid_argument(target + ": the profile needs a scenario, a mode and a walker");
  }
  if (!has_mutations() && !profile_.call_args && !profile_.has_calls()) {
    throw std::invalid_argument(target + ": the profile has no part to mutate");
  }
}

bool Mutator::has_mutations() const {
  return profile_.registers || profile_.stack_words || profile_.thread_fields;
}

bool Mutator::allows(const Mutation& mutation) const {
  switch (mutation.kind) {
    case MutationKind::set_register:
      return profile_.registers && (!profile_.frame_triple_only || mutation.reg <= Register::fp);
    case MutationKind::set_stack_word:
      return profile_.stack_words;
    default:
      return profile_.thread_fields;
  }
}

void Mutator::conform(Input* input, Rng& rng) const {
  if (pinned_) {
    input->scenario = pinned_->scenario;
    input->mode = pinned_->mode;
  } else {
    if (!has(scenarios_, input->scenario)) {
      input->scenario = one_of(profile_.scenarios, rng);
    }
    if (!has(modes_, input->mode)) {
      input->mode = one_of(profile_.modes, rng);
    }
  }
  if (!has(walkers_, input->walker) || !profile_.walks_in(input->walker, input->mode)) {
    input->walker = pick_walker(input->mode, rng);
  }
  input->halt.any = true;
  canonicalise(&input->halt);
  if (!profile_.call_args) {
    input->call.context = ContextArg::victim;
    input->call.env = EnvArg::victim;
  }
  const WalkerTraits& traits = traits_of(input->walker);
  if (traits.options == 0) {
    input->call.options = 0;
  }
  if (!traits.masks) {
    input->call.accepted_kinds = 0;
    input->call.accepted_states = 0;
  }
  if (!profile_.iterator_calls || !traits.iterator_calls) {
    input->iterator_calls.clear();
  }
  if (!profile_.queue_calls || !traits.queue_calls) {
    input->queue_calls.clear();
  }
  input->iterator_calls.resize(std::min(input->iterator_calls.size(), kMostCalls));
  input->queue_calls.resize(std::min(input->queue_calls.size(), kMostCalls));
  size_t i = 0;
  while (i < input->mutations.size()) {
    if (!allows(input->mutations[i]) || is_overwritten(*input, i)) {
      erase(input, i);
    } else {
      ++i;
    }
  }
}

WalkerId Mutator::pick_walker(Mode mode, Rng& rng) const {
  const auto walks = [&](WalkerId id) { return profile_.walks_in(id, mode); };
  const auto fitting = static_cast<size_t>(std::ranges::count_if(profile_.walkers, walks));
  if (fitting == 0) {
    return one_of(profile_.walkers, rng);
  }
  size_t choice = rng.below(fitting);
  return *std::ranges::find_if(profile_.walkers,
                               [&](WalkerId id) { return walks(id) && choice-- == 0; });
}

void Mutator::change_scenario(Input* input, Rng& rng) const {
  if (rng.one_in(4)) {
    input->mode = one_of(profile_.modes, rng);
  } else {
    input->scenario = one_of(profile_.scenarios, rng);
  }
}

bool Mutator::is_changed(const Input& input) const {
  if (profile_.has_calls()) {
    return input.has_calls();
  }
  return !input.mutations.empty() || (profile_.call_args && input.call != CallArgs{});
}

void Mutator::mutate(Input* input, Rng& rng) const {
  if (rng.one_in(profile_.scenario_one_in)) {
    change_scenario(input, rng);
  }
  if (profile_.walkers.size() > 1 && rng.one_in(profile_.walker_one_in)) {
    input->walker = one_of(profile_.walkers, rng);
  }
  conform(input, rng);
  if (profile_.baseline != Baseline::none) {
    mutate_by(profile_.baseline, input, rng);
    return;
  }
  if (rng.one_in(profile_.unmutated_one_in)) {
    input->mutations.clear();
    input->call = CallArgs{};
    if (rng.one_in(2)) {
      input->call.options = traits_of(input->walker).options & static_cast<uint32_t>(rng.next());
    }
    return;
  }
  // Mostly one step, sometimes a burst: 1 + a geometric number.
  do {
    step(input, rng);
  } while (rng.one_in(3));
  trim(input, rng);
  while (!is_changed(*input)) {
    step(input, rng);
  }
}

void Mutator::step(Input* input, Rng& rng) const {
  if (profile_.has_calls() && !rng.one_in(6)) {
    if (profile_.queue_calls) {
      change_calls(kMostCalls, rng, &input->queue_calls);
    } else {
      change_calls(kMostCalls, rng, &input->iterator_calls);
    }
    return;
  }
  const bool call_step =
      profile_.call_args ? !has_mutations() || rng.one_in(2) : rng.one_in(profile_.options_one_in);
  if (call_step) {
    step_call(input, rng);
    return;
  }
  if (input->mutations.empty()) {
    if (profile_.registers && rng.one_in(4)) {
      frame_switch(input, rng);
    } else {
      add(input, rng);
    }
    return;
  }
  const MutatorWeights& weights = profile_.weights;
  const uint32_t switch_weight = profile_.registers ? weights.frame_switch : 0;
  uint32_t choice = rng.below(weights.add + weights.replace + weights.tweak + weights.move +
                              weights.remove + switch_weight);
  const auto chosen = [&choice](uint32_t weight) {
    const bool hit = choice < weight;
    choice -= weight;
    return hit;
  };
  if (chosen(weights.add)) {
    add(input, rng);
  } else if (chosen(weights.replace)) {
    pick_value(names_, rng, &any_mutation(input, rng));
  } else if (chosen(weights.tweak)) {
    tweak_value(names_, rng, &any_mutation(input, rng));
  } else if (chosen(weights.move)) {
    move(input, &any_mutation(input, rng), rng);
  } else if (chosen(weights.remove)) {
    erase(input, rng.below(input->mutations.size()));
  } else {
    frame_switch(input, rng);
  }
}

void Mutator::step_call(Input* input, Rng& rng) const {
  const WalkerTraits& traits = traits_of(input->walker);
  const uint32_t own = profile_.call_args ? 6 : 0;  // shares of 16 of context and JNIEnv
  const uint32_t choice = rng.below(16);
  if (choice < own) {
    pick_context_and_env(rng, &input->call);
  } else if (choice < 9 && traits.options != 0) {
    pick_options(traits, rng, &input->call);
  } else if (choice < 11 && traits.masks) {
    pick_masks(rng, &input->call);
  } else {
    pick_depth(rng, &input->call);
  }
  canonicalise(&input->call);
}

void Mutator::pick_place(Mutation* mutation, Rng& rng) const {
  MutationKind kinds[static_cast<size_t>(MutationKind::count)] = {};
  size_t count = 0;
  if (profile_.registers) {
    kinds[count++] = MutationKind::set_register;
  }
  if (profile_.stack_words) {
    kinds[count++] = MutationKind::set_stack_word;
  }
  if (profile_.thread_fields) {
    kinds[count++] = MutationKind::set_thread_field;
  }
  mutation->kind = kinds[rng.below(count)];
  switch (mutation->kind) {
    case MutationKind::set_register:
      // pc, sp and fp lead every walker; the others matter to few.
      mutation->reg = profile_.frame_triple_only || !rng.one_in(3)
                          ? static_cast<Register>(rng.below(3))
                          : rng.any<Register>();
      break;
    case MutationKind::set_stack_word: {
      constexpr StackAnchor kAnchors[] = {
          StackAnchor::sp,           StackAnchor::sp,         StackAnchor::sp,
          StackAnchor::fp,           StackAnchor::fp,         StackAnchor::fp,
          StackAnchor::last_java_sp, StackAnchor::stack_base, StackAnchor::saved_anchor};
      mutation->anchor = rng.pick(kAnchors);
      mutation->offset = pick_word_offset(mutation->anchor, rng);
      break;
    }
    default:
      mutation->field = rng.any<ThreadField>();
  }
}

void Mutator::add(Input* input, Rng& rng) const {
  Mutation place;
  pick_place(&place, rng);
  canonicalise(&place);
  Mutation* mutation = find_place(input, place);
  if (mutation == nullptr) {
    if (input->mutations.size() >= kMostMutations) {
      mutation = &any_mutation(input, rng);
    } else {
      mutation = &input->mutations.emplace_back(std::move(place));
    }
  }
  pick_value(names_, rng, mutation);
}

void Mutator::move(Input* input, Mutation* mutation, Rng& rng) const {
  Mutation moved;
  pick_place(&moved, rng);
  canonicalise(&moved);
  if (find_place(input, moved) != nullptr) {
    return;
  }
  moved.value = std::move(mutation->value);
  *mutation = std::move(moved);
  if (is_no_op(*mutation)) {
    pick_value(names_, rng, mutation);
  }
}

void Mutator::frame_switch(Input* input, Rng& rng) const {
  constexpr int32_t kWord = 8;
  const auto words = static_cast<int32_t>(1 + rng.below(size_t{2} << rng.below(6)));
  switch (rng.below(5)) {
    case 0:
      // As if frames up to that slot had returned.
      set(input, Register::pc, ValueKind::slot, 0, static_cast<uint16_t>(words));
      set(input, Register::sp, ValueKind::real_sp, kWord * (words + 1));
      set(input, Register::fp, ValueKind::slot, 0, static_cast<uint16_t>(words - 1));
      break;
    case 1: {
      // The frame of another thread.
      const auto other = static_cast<uint16_t>(rng.below(4));
      set(input, Register::pc, ValueKind::other_pc, 0, other);
      set(input, Register::sp, ValueKind::other_sp, 0, other);
      set(input, Register::fp, ValueKind::other_sp, kWord * words, other);
      break;
    }
    case 2:
      // Just called into other code: its entry, the return address pushed.
      pick_code(names_, rng, &of_register(input, Register::pc).value);
      set(input, Register::sp, ValueKind::real_sp, -kWord);
      break;
    case 3:
      // Other code with a frame of its own.
      pick_code(names_, rng, &of_register(input, Register::pc).value);
      set(input, Register::sp, ValueKind::real_sp, -kWord * words);
      set(input, Register::fp, ValueKind::real_sp, -kWord);
      break;
    default:
      // At the very first frame of the stack.
      pick_code(names_, rng, &of_register(input, Register::pc).value);
      set(input, Register::sp, ValueKind::stack_base, -kWord * words);
      set(input, Register::fp, ValueKind::stack_base, -kWord);
  }
  Mutation& pc = of_register(input, Register::pc);
  canonicalise(&pc.value);
}

void Mutator::trim(Input* input, Rng& rng) const {
  if (rng.one_in(16)) {
    input->call = CallArgs{};
  }
  if (profile_.has_calls()) {
    // Mostly of real contexts, of which the model is sure.
    if (!rng.one_in(4)) {
      input->mutations.clear();
    }
    const auto shorten = [&rng](auto* calls) {
      while (calls->size() > kUsualCalls && !rng.one_in(4)) {
        calls->erase(calls->begin() + rng.below(calls->size()));
      }
    };
    shorten(&input->iterator_calls);
    shorten(&input->queue_calls);
  }
  if (input->mutations.size() > 1 && rng.one_in(4)) {
    erase(input, rng.below(input->mutations.size()));
  }
  const size_t most = rng.one_in(8) ? kMostMutations : kUsualMutations;
  while (input->mutations.size() > most) {
    erase(input, rng.below(input->mutations.size()));
  }
  if (!input->mutations.empty() && rng.one_in(16)) {
    Mutation& simpler = any_mutation(input, rng);
    simpler.value.delta = 0;
    if (is_no_op(simpler)) {
      pick_value(names_, rng, &simpler);
    }
  }
}

void Mutator::crossover(const Input& a, const Input& b, Input* out, Rng& rng) const {
  const bool swapped = rng.one_in(2);
  const Input& first = swapped ? b : a;
  const Input& second = swapped ? a : b;
  out->scenario = first.scenario;
  out->mode = rng.one_in(2) ? first.mode : second.mode;
  out->walker = rng.one_in(2) ? first.walker : second.walker;
  out->halt = HaltPoint{};
  out->call.depth = first.call.depth;
  out->call.raw_depth = first.call.raw_depth;
  out->call.context = rng.one_in(2) ? first.call.context : second.call.context;
  out->call.env = rng.one_in(2) ? first.call.env : second.call.env;
  out->call.options = rng.one_in(2) ? first.call.options : second.call.options;
  const Input& masks = rng.one_in(2) ? first : second;
  out->call.accepted_kinds = masks.call.accepted_kinds;
  out->call.accepted_states = masks.call.accepted_states;
  splice_calls(first.iterator_calls, second.iterator_calls, kMostCalls, rng, &out->iterator_calls);
  splice_calls(first.queue_calls, second.queue_calls, kMostCalls, rng, &out->queue_calls);
  out->mutations.clear();
  for (const Input* parent : {&first, &second}) {
    for (const Mutation& mutation : parent->mutations) {
      const bool taken = parent == &first ? !rng.one_in(3) : rng.one_in(2);
      if (!taken || out->mutations.size() >= kMostMutations) {
        continue;
      }
      if (find_place(out, mutation) == nullptr) {
        out->mutations.push_back(mutation);
      }
    }
  }
  // One parent's value at the other's place.
  if (!out->mutations.empty() && !second.mutations.empty() && rng.one_in(4)) {
    Mutation& mixed = any_mutation(out, rng);
    mixed.value = second.mutations[rng.below(second.mutations.size())].value;
    if (is_no_op(mixed)) {
      pick_value(names_, rng, &mixed);
    }
  }
  conform(out, rng);
}

}  // namespace framestorm
