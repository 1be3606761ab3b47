#include "fuzz/mutator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/input/binary.h"
#include "harness/input/canonical.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

constexpr int kRounds = 100'000;

class FakeCode : public CodeNames {
 public:
  const NamedCode* pick(Rng& rng) const override { return &code_[rng.below(code_.size())]; }

 private:
  std::vector<NamedCode> code_ = {
      {{CodeKind::nmethod, 4, CodeAnchor::entry, "framestorm/C2Inlined.leaf"}, 400},
      {{CodeKind::nmethod, 1, CodeAnchor::entry, "framestorm/C1.spin"}, 200},
      {{CodeKind::stub, 0, CodeAnchor::entry, "call_stub"}, 300},
      {{CodeKind::codelet, 0, CodeAnchor::entry, "invokevirtual"}, 256},
      {{CodeKind::function, 0, CodeAnchor::entry, "_ZN11OptoRuntime9rethrow_CE"}, 96},
  };
};

const FakeCode& fake_code() {
  static const FakeCode code;
  return code;
}

const MutatorProfile& profile_of(std::string_view target) {
  const MutatorProfile* profile = find_mutator_profile(target);
  if (profile == nullptr) {
    throw std::logic_error("no such profile");
  }
  return *profile;
}

// A chain as libFuzzer makes it: each input is mutated from a recent one, or crossed.
void run(const Mutator& mutator, uint64_t seed, int rounds,
         const std::function<void(const Input&)>& check) {
  Rng rng(seed);
  std::vector<Input> pool(16);
  Input child;
  for (int i = 0; i < rounds; ++i) {
    const Input& parent = pool[rng.below(pool.size())];
    if (rng.one_in(8)) {
      mutator.crossover(parent, pool[rng.below(pool.size())], &child, rng);
      check(child);
    } else {
      child = parent;
    }
    mutator.mutate(&child, rng);
    check(child);
    pool[rng.below(pool.size())] = child;
  }
}

// Options leave a real context what it is.
bool is_unmutated(const Input& input) {
  CallArgs plain;
  plain.options = input.call.options;
  return input.mutations.empty() && input.call == plain;
}

// Within the profile, and nothing that its walker does not read.
void expect_walker_of(const MutatorProfile& profile, const Input& input) {
  ASSERT_NE(std::ranges::find(profile.walkers, input.walker), profile.walkers.end());
  const WalkerTraits& traits = traits_of(input.walker);
  ASSERT_TRUE(traits.walks_in(input.mode)) << name_of(input.walker);
  ASSERT_TRUE(traits.options != 0 || input.call.options == 0);
  ASSERT_TRUE(traits.masks || (input.call.accepted_kinds == 0 && input.call.accepted_states == 0));
  ASSERT_TRUE((profile.iterator_calls && traits.iterator_calls) || input.iterator_calls.empty());
  ASSERT_TRUE((profile.queue_calls && traits.queue_calls) || input.queue_calls.empty());
  ASSERT_LE(input.iterator_calls.size() + input.queue_calls.size(), Mutator::kMostCalls);
  if (!profile.call_args) {
    ASSERT_EQ(input.call.context, ContextArg::victim);
    ASSERT_EQ(input.call.env, EnvArg::victim);
  }
}

class EachProfile : public testing::TestWithParam<std::string> {
 protected:
  const MutatorProfile& profile() const { return profile_of(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Targets, EachProfile, testing::ValuesIn(target_names()),
                         [](const auto& target) { return target.param; });

TEST_P(EachProfile, IsNeverLeft) {
  const std::string_view target = GetParam();
  run(Mutator(profile(), &fake_code()), 1, kRounds, [&](const Input& input) {
    expect_walker_of(profile(), input);
    ASSERT_TRUE(input.halt.any);
    if (target == "fuzz_call") {
      ASSERT_TRUE(input.mutations.empty());
    }
    ASSERT_LE(input.mutations.size(), Mutator::kMostMutations);
    for (const Mutation& mutation : input.mutations) {
      const MutationKind expected = target == "fuzz_stack"          ? MutationKind::set_stack_word
                                    : target == "fuzz_thread_state" ? MutationKind::set_thread_field
                                                                    : MutationKind::set_register;
      ASSERT_EQ(mutation.kind, expected);
      if (profile().frame_triple_only) {
        ASSERT_LE(mutation.reg, Register::fp);
      }
      ASSERT_FALSE(is_no_op(mutation));
    }
  });
}

TEST_P(EachProfile, OutputEncodesAndDecodesToItself) {
  Input reused;
  std::vector<uint8_t> bytes;
  run(Mutator(profile(), &fake_code()), 2, kRounds, [&](const Input& input) {
    encode(input, &bytes);
    decode(bytes, &reused);
    ASSERT_EQ(reused, input);
  });
}

TEST_P(EachProfile, TakesForeignInputsHome) {
  Input foreign;
  foreign.walker = WalkerId::plugin;
  foreign.halt.any = false;
  foreign.halt.code.name = "call_stub";
  foreign.call.env = EnvArg::null;
  foreign.call.options = 5;
  foreign.call.accepted_states = 5;
  foreign.iterator_calls.resize(kMaxIteratorCalls);
  foreign.queue_calls.resize(kMaxQueueCalls);
  foreign.mutations.resize(kMaxMutations);
  for (size_t i = 0; i < kMaxMutations; ++i) {
    foreign.mutations[i].kind = static_cast<MutationKind>(i % 3);
    foreign.mutations[i].value.kind = ValueKind::raw;
    if (foreign.mutations[i].kind == MutationKind::set_register) {
      foreign.mutations[i].reg = static_cast<Register>(i);
    }
  }
  const Mutator mutator(profile(), &fake_code());
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    Input input = foreign;
    mutator.mutate(&input, rng);
    expect_walker_of(profile(), input);
    ASSERT_TRUE(input.halt.any);
    for (const Mutation& mutation : input.mutations) {
      ASSERT_TRUE(mutation.kind != MutationKind::set_register || profile().registers);
      ASSERT_TRUE(mutation.reg <= Register::fp || !profile().frame_triple_only);
      ASSERT_TRUE(mutation.kind != MutationKind::set_stack_word || profile().stack_words);
      ASSERT_TRUE(mutation.kind != MutationKind::set_thread_field || profile().thread_fields);
    }
  }
}

TEST_P(EachProfile, AShareIsUnmutated) {
  const Mutator mutator(profile(), &fake_code());
  Rng rng(4);
  Input input;
  int unmutated = 0;
  for (int i = 0; i < kRounds; ++i) {
    mutator.mutate(&input, rng);
    unmutated += is_unmutated(input) ? 1 : 0;
  }
  // Sequences of calls are mostly of real contexts.
  EXPECT_GT(unmutated, profile().has_calls() ? kRounds / 3 : kRounds / 80);
  // Options alone are a mutation of fuzz_call's.
  EXPECT_LT(unmutated, profile().has_calls() ? kRounds : kRounds / (profile().call_args ? 25 : 50));
}

TEST_P(EachProfile, OfOffsetsOnlyStackAndFramePointerAreAFewBytesOff) {
  MutatorProfile profile = profile_of(GetParam());
  profile.baseline = Baseline::offsets;
  Rng rng(3);
  Input input;
  std::set<int32_t> offsets;
  for (int i = 0; i < 1000; ++i) {
    Mutator(profile, &fake_code()).mutate(&input, rng);
    ASSERT_EQ(input.mutations.size(), 2U);
    EXPECT_EQ(input.call, CallArgs{});
    for (size_t at = 0; at < 2; ++at) {
      const Mutation& mutation = input.mutations[at];
      EXPECT_EQ(mutation.reg, at == 0 ? Register::sp : Register::fp);
      EXPECT_EQ(mutation.value.kind, ValueKind::real);
      EXPECT_LE(std::abs(mutation.value.delta), 4096);
      offsets.insert(mutation.value.delta);
    }
  }
  EXPECT_GT(offsets.size(), 500U);
}

TEST_P(EachProfile, OfFaultyReadsOnePointerLeadsToAnUnreadablePage) {
  MutatorProfile profile = profile_of(GetParam());
  profile.baseline = Baseline::faulty_reads;
  Rng rng(3);
  Input input;
  std::set<std::tuple<MutationKind, Register, StackAnchor, int16_t, ThreadField>> places;
  for (int i = 0; i < 1000; ++i) {
    Mutator(profile, &fake_code()).mutate(&input, rng);
    ASSERT_EQ(input.mutations.size(), 1U);
    EXPECT_EQ(input.call, CallArgs{});
    const Mutation& fault = input.mutations.front();
    Mutation canonical = fault;
    canonicalise(&canonical);
    EXPECT_EQ(fault, canonical);
    EXPECT_EQ(fault.value.kind, ValueKind::guard_page);
    EXPECT_NE(fault.reg, Register::r0);
    places.emplace(fault.kind, fault.reg, fault.anchor, fault.offset, fault.field);
  }
  EXPECT_TRUE(places.contains({MutationKind::set_register, Register::fp, {}, 0, {}}));
  EXPECT_TRUE(places.contains({MutationKind::set_stack_word, {}, StackAnchor::fp, 0, {}}));
  EXPECT_TRUE(
      places.contains({MutationKind::set_thread_field, {}, {}, 0, ThreadField::last_java_sp}));
  EXPECT_GT(places.size(), 60U);
}

TEST_P(EachProfile, InputsStaySmall) {
  size_t mutations = 0;
  size_t small = 0;
  size_t bytes = 0;
  size_t inputs = 0;
  std::vector<uint8_t> encoded;
  run(Mutator(profile(), &fake_code()), 5, kRounds, [&](const Input& input) {
    ++inputs;
    mutations += input.mutations.size();
    small += input.mutations.size() <= 4 ? 1U : 0U;
    encode(input, &encoded);
    bytes += encoded.size();
  });
  EXPECT_GT(small * 10, inputs * 8) << "at least 80 % have at most 4 mutations";
  EXPECT_LE(bytes, inputs * 40) << "40 bytes on average at most";
  if (GetParam() != "fuzz_call" && !profile().has_calls()) {
    EXPECT_GT(mutations, inputs);
  }
}

TEST_P(EachProfile, SameSeedSameInputs) {
  const Mutator mutator(profile(), &fake_code());
  const auto inputs = [&mutator](uint64_t seed) {
    std::vector<Input> all;
    run(mutator, seed, 2000, [&all](const Input& input) { all.push_back(input); });
    return all;
  };
  EXPECT_EQ(inputs(6), inputs(6));
  EXPECT_NE(inputs(6), inputs(7));
}

TEST_P(EachProfile, OnlyAPinHoldsTheScenario) {
  Mutator mutator(profile(), &fake_code());
  mutator.pin(ScenarioId::osr, Mode::separate_thread);
  run(mutator, 8, 20'000, [](const Input& input) {
    ASSERT_EQ(input.scenario, ScenarioId::osr);
    ASSERT_EQ(input.mode, Mode::separate_thread);
  });
  Mutator free(profile(), &fake_code());
  std::set<ScenarioId> scenarios;
  run(free, 9, kRounds, [&](const Input& input) { scenarios.insert(input.scenario); });
  EXPECT_EQ(scenarios.size(), static_cast<size_t>(ScenarioId::count));
}

TEST_P(EachProfile, EveryWalkerHasItsShare) {
  std::map<WalkerId, size_t> inputs;
  size_t all = 0;
  // Inputs descend from sixteen, so that shares drift: in one run of five, one falls below the bound.
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    run(Mutator(profile(), &fake_code()), seed, kRounds, [&](const Input& input) {
      ++inputs[input.walker];
      ++all;
    });
  }
  EXPECT_EQ(inputs.size(), profile().walkers.size());
  for (const auto& [walker, count] : inputs) {
    EXPECT_GT(count * 30, all) << name_of(walker);
  }
}

TEST_P(EachProfile, DepthOptionsAndMasksAreMutated) {
  std::set<DepthKind> depths;
  uint32_t options = 0;
  uint32_t without = 0;  // bits that were 0 in some options that were not
  std::set<uint8_t> kinds;
  std::set<uint32_t> states;
  bool with_mutations = false;
  run(Mutator(profile(), &fake_code()), 19, kRounds, [&](const Input& input) {
    depths.insert(input.call.depth);
    options |= input.call.options;
    if (input.call.options != 0) without |= ~input.call.options;
    kinds.insert(input.call.accepted_kinds);
    states.insert(input.call.accepted_states);
    with_mutations |= input.call != CallArgs{} && !input.mutations.empty();
  });
  EXPECT_EQ(depths.size(), static_cast<size_t>(DepthKind::count));
  EXPECT_EQ(options, UINT32_MAX);
  EXPECT_EQ(without, UINT32_MAX);
  if (!profile().has_calls()) {
    EXPECT_GT(kinds.size(), 20U);
    EXPECT_GT(states.size(), 20U);
  }
  EXPECT_TRUE(with_mutations || GetParam() == "fuzz_call");
}

TEST_P(EachProfile, ListsOfTheProfileAreKept) {
  MutatorProfile narrow = profile();
  narrow.scenarios = {ScenarioId::c1, ScenarioId::parked};
  narrow.modes = {Mode::separate_thread};
  narrow.walkers = {WalkerId::asgst_env, WalkerId::asgst_frame};
  std::set<std::pair<ScenarioId, WalkerId>> seen;
  run(Mutator(narrow, &fake_code()), 10, 20'000, [&](const Input& input) {
    ASSERT_EQ(input.mode, Mode::separate_thread);
    seen.insert({input.scenario, input.walker});
  });
  const std::set<std::pair<ScenarioId, WalkerId>> expected = {
      {ScenarioId::c1, WalkerId::asgst_env},
      {ScenarioId::c1, WalkerId::asgst_frame},
      {ScenarioId::parked, WalkerId::asgst_env},
      {ScenarioId::parked, WalkerId::asgst_frame}};
  EXPECT_EQ(seen, expected);
}

// What the run reached, as sets of numbers of enumerators.
struct Reached {
  std::set<Register> registers;
  std::set<StackAnchor> anchors;
  std::set<ThreadField> fields;
  std::set<ValueKind> values;
  std::set<CodeKind> code_kinds;
  std::set<CodeAnchor> code_anchors;
  std::set<DepthKind> depths;
  std::set<ContextArg> contexts;
  std::set<EnvArg> envs;
};

template <typename Enum>
size_t count_of() {
  return static_cast<size_t>(Enum::count);
}

Reached reached_by(std::string_view target) {
  Reached reached;
  run(Mutator(profile_of(target), &fake_code()), 11, kRounds, [&reached](const Input& input) {
    reached.depths.insert(input.call.depth);
    reached.contexts.insert(input.call.context);
    reached.envs.insert(input.call.env);
    for (const Mutation& mutation : input.mutations) {
      reached.registers.insert(mutation.reg);
      reached.anchors.insert(mutation.anchor);
      reached.fields.insert(mutation.field);
      reached.values.insert(mutation.value.kind);
      reached.code_kinds.insert(mutation.value.code.kind);
      reached.code_anchors.insert(mutation.value.code.anchor);
    }
  });
  return reached;
}

TEST(Reach, EveryPlaceAndValueKind) {
  for (const char* target : {"fuzz_ucontext", "fuzz_frame", "fuzz_stack", "fuzz_thread_state"}) {
    const Reached reached = reached_by(target);
    EXPECT_EQ(reached.values.size(), count_of<ValueKind>()) << target;
    EXPECT_EQ(reached.code_kinds.size(), count_of<CodeKind>()) << target;
    EXPECT_EQ(reached.code_anchors.size(), count_of<CodeAnchor>()) << target;
  }
  EXPECT_EQ(reached_by("fuzz_ucontext").registers.size(), count_of<Register>());
  EXPECT_EQ(reached_by("fuzz_frame").registers.size(), 3U);
  EXPECT_EQ(reached_by("fuzz_stack").anchors.size(), count_of<StackAnchor>());
  EXPECT_EQ(reached_by("fuzz_thread_state").fields.size(), count_of<ThreadField>());
}

TEST(Reach, EveryCallArgument) {
  const Reached reached = reached_by("fuzz_call");
  EXPECT_EQ(reached.depths.size(), count_of<DepthKind>());
  EXPECT_EQ(reached.contexts.size(), count_of<ContextArg>());
  EXPECT_EQ(reached.envs.size(), count_of<EnvArg>());
}

template <typename Call>
void expect_every_call_in_many_orders(std::string_view target, std::vector<Call> Input::* calls) {
  using Kind = decltype(Call::kind);
  std::set<Kind> kinds;
  std::set<std::pair<Kind, Kind>> pairs;
  std::set<uint8_t> arguments;
  size_t real = 0;
  size_t inputs = 0;
  run(Mutator(profile_of(target), &fake_code()), 20, kRounds, [&](const Input& input) {
    ++inputs;
    real += input.mutations.empty() ? 1U : 0U;
    const std::vector<Call>& all = input.*calls;
    for (size_t i = 0; i < all.size(); ++i) {
      kinds.insert(all[i].kind);
      arguments.insert(all[i].argument);
      if (i > 0) pairs.insert({all[i - 1].kind, all[i].kind});
    }
  });
  EXPECT_EQ(kinds.size(), count_of<Kind>());
  EXPECT_EQ(pairs.size(), count_of<Kind>() * count_of<Kind>());
  EXPECT_EQ(arguments.size(), size_t{kMaxIteratorArgument} + 1);
  EXPECT_GT(real * 2, inputs) << "most contexts are real ones";
  EXPECT_LT(real * 20, inputs * 19) << "some are not";
}

TEST(Reach, EveryIteratorCallInManyOrders) {
  expect_every_call_in_many_orders("fuzz_iterator", &Input::iterator_calls);
}

TEST(Reach, EveryQueueCallInManyOrders) {
  expect_every_call_in_many_orders("fuzz_queue", &Input::queue_calls);
}

// Legal states of HotSpot's JavaThreadState and their illegal neighbours.
TEST(Reach, ThreadStatesNearTheLegalOnes) {
  std::set<uint64_t> states;
  run(Mutator(profile_of("fuzz_thread_state"), &fake_code()), 12, kRounds,
      [&states](const Input& input) {
        for (const Mutation& mutation : input.mutations) {
          if (mutation.field == ThreadField::state && mutation.value.kind == ValueKind::raw) {
            states.insert(mutation.value.raw);
          }
        }
      });
  for (uint64_t state = 0; state <= 13; ++state) {
    EXPECT_TRUE(states.contains(state)) << state;
  }
}

TEST(Reach, StackPointersThatWalkersMustRefuse) {
  bool misaligned = false;
  bool base = false;
  bool below = false;
  bool deopt = false;
  bool outside = false;
  run(Mutator(profile_of("fuzz_ucontext"), &fake_code()), 13, kRounds, [&](const Input& input) {
    for (const Mutation& mutation : input.mutations) {
      const SymbolicValue& value = mutation.value;
      misaligned |= value.kind == ValueKind::real_sp && value.delta % 8 != 0;
      base |= value.kind == ValueKind::stack_base && value.delta == -8;
      below |= value.kind == ValueKind::real_sp && value.delta == -8;
      deopt |= value.code.anchor == CodeAnchor::deopt_handler && value.delta == 0;
      outside |= value.code.anchor == CodeAnchor::end && value.delta >= 0;
    }
  });
  EXPECT_TRUE(misaligned && base && below && deopt && outside)
      << misaligned << base << below << deopt << outside;
}

TEST(Mutate, WithoutCodeNamesThereIsNoCode) {
  run(Mutator(profile_of("fuzz_ucontext"), nullptr), 14, 20'000, [](const Input& input) {
    for (const Mutation& mutation : input.mutations) {
      ASSERT_NE(mutation.value.kind, ValueKind::code);
    }
  });
}

TEST(Mutate, LaterMutationOfOnePlaceWins) {
  Input input;
  input.mutations.resize(2);
  input.mutations[0].value.kind = ValueKind::guard_page;
  input.mutations[1].value.kind = ValueKind::java_heap;
  MutatorProfile profile = profile_of("fuzz_ucontext");
  const Mutator mutator(profile, &fake_code());
  Rng rng(15);
  Input child;
  bool has_heap = false;
  for (int i = 0; i < 200; ++i) {
    mutator.crossover(input, input, &child, rng);
    ASSERT_LE(child.mutations.size(), 1U) << "one place, one mutation";
    has_heap |= !child.mutations.empty() && child.mutations[0].value.kind == ValueKind::java_heap;
  }
  EXPECT_TRUE(has_heap);
}

TEST(Mutate, ExtremeDeltasDoNotOverflow) {
  Input extreme;
  extreme.mutations.resize(1);
  extreme.mutations[0].value.kind = ValueKind::code;
  extreme.mutations[0].value.delta = INT32_MAX;
  const Mutator mutator(profile_of("fuzz_ucontext"), &fake_code());
  Rng rng(16);
  for (int i = 0; i < 10'000; ++i) {
    Input input = extreme;
    mutator.mutate(&input, rng);
    for (const Mutation& mutation : input.mutations) {
      ASSERT_FALSE(is_no_op(mutation));
    }
    extreme.mutations[0].value.delta = i % 2 == 0 ? INT32_MIN : INT32_MAX;
    extreme.mutations[0].value.kind = i % 3 == 0 ? ValueKind::real_sp : ValueKind::code;
  }
}

TEST(Crossover, MixesMutationsAndArgumentsOfBothParents) {
  Input a;
  a.scenario = ScenarioId::c1;
  a.mutations.resize(1);
  a.mutations[0].reg = Register::sp;
  a.mutations[0].value.kind = ValueKind::guard_page;
  Input b;
  b.scenario = ScenarioId::osr;
  b.mutations.resize(1);
  b.mutations[0].reg = Register::fp;
  b.mutations[0].value.kind = ValueKind::unmapped;
  const Mutator mutator(profile_of("fuzz_frame"), &fake_code());
  Rng rng(17);
  Input child;
  std::set<ScenarioId> scenarios;
  bool both = false;
  bool value_moved = false;
  for (int i = 0; i < 1000; ++i) {
    mutator.crossover(a, b, &child, rng);
    scenarios.insert(child.scenario);
    both |= child.mutations.size() == 2;
    value_moved |= std::ranges::any_of(child.mutations, [](const Mutation& mutation) {
      return mutation.reg == Register::sp && mutation.value.kind == ValueKind::unmapped;
    });
  }
  EXPECT_EQ(scenarios, (std::set{ScenarioId::c1, ScenarioId::osr}));
  EXPECT_TRUE(both);
  EXPECT_TRUE(value_moved);
}

// The files are all there is to say which targets there are.
TEST(Profiles, AreThoseOfTheFilesAndFoundByTarget) {
  std::istringstream files(FRAMESTORM_TARGETS);
  size_t count = 0;
  for (std::string file; files >> file; ++count) {
    const MutatorProfile* const profile = find_mutator_profile(file);
    ASSERT_NE(profile, nullptr) << file << ".cpp registers no target of its name";
    EXPECT_EQ(profile->target, file);
  }
  EXPECT_EQ(mutator_profiles().size(), count);
  EXPECT_EQ(find_mutator_profile("fuzz_nothing"), nullptr);
}

TEST(Profiles, ThatAllowNothingAreRefused) {
  MutatorProfile empty = profile_of("fuzz_call");
  empty.modes.clear();
  EXPECT_THROW(Mutator(empty, nullptr), std::invalid_argument);
  empty = profile_of("fuzz_call");
  empty.call_args = false;
  EXPECT_THROW(Mutator(empty, nullptr), std::invalid_argument);
}

}  // namespace
}  // namespace framestorm
