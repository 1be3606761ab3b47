#include "harness/executor/minimizer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace framestorm {
namespace {

constexpr uint32_t kBudget = 1000;

Mutation set(Register reg, ValueKind kind, int32_t delta = 0, uint16_t index = 0,
             uint64_t raw = 0) {
  Mutation mutation;
  mutation.reg = reg;
  mutation.value.kind = kind;
  mutation.value.delta = delta;
  mutation.value.index = index;
  mutation.value.raw = raw;
  return mutation;
}

bool has(const Input& input, Register reg) {
  return std::ranges::any_of(input.mutations, [&](const Mutation& m) { return m.reg == reg; });
}

Input everything_set() {
  Input input;
  input.call = {DepthKind::huge, 0, ContextArg::misaligned, EnvArg::null, 7, 1, 5};
  input.iterator_calls = {{IteratorCallKind::next, 2}, {IteratorCallKind::drain}};
  input.mutations = {
      set(Register::pc, ValueKind::real_pc, 5), set(Register::sp, ValueKind::real_sp, -64),
      set(Register::fp, ValueKind::unmapped), set(Register::r0, ValueKind::raw, 0, 0, 9)};
  return input;
}

TEST(Minimizer, DropsMutationsThatDoNotMatter) {
  const Input smallest =
      minimize(everything_set(), [](const Input& i) { return has(i, Register::sp); }, kBudget);
  ASSERT_EQ(smallest.mutations.size(), 1U);
  EXPECT_EQ(smallest.mutations.front().reg, Register::sp);
}

TEST(Minimizer, KeepsMutationsThatMatterOnlyTogether) {
  const Input smallest = minimize(
      everything_set(), [](const Input& i) { return has(i, Register::pc) && has(i, Register::fp); },
      kBudget);
  ASSERT_EQ(smallest.mutations.size(), 2U);
  EXPECT_EQ(smallest.mutations[0].reg, Register::pc) << "the order stays";
  EXPECT_EQ(smallest.mutations[1].reg, Register::fp);
}

TEST(Minimizer, ResetsEachCallArgumentThatDoesNotMatter) {
  EXPECT_EQ(minimize(everything_set(), [](const Input&) { return true; }, kBudget), Input{});
  const Input context = minimize(
      everything_set(), [](const Input& i) { return i.call.context == ContextArg::misaligned; },
      kBudget);
  EXPECT_EQ(context.call, (CallArgs{.context = ContextArg::misaligned}));
  const Input depth = minimize(
      everything_set(), [](const Input& i) { return i.call.depth == DepthKind::huge; }, kBudget);
  EXPECT_EQ(depth.call, (CallArgs{.depth = DepthKind::huge}));
}

TEST(Minimizer, ResetsOptionsBitByBit) {
  const Input smallest =
      minimize(everything_set(), [](const Input& i) { return (i.call.options & 2) != 0; }, kBudget);
  EXPECT_EQ(smallest.call, (CallArgs{.options = 2}));
  EXPECT_TRUE(smallest.iterator_calls.empty());
}

TEST(Minimizer, DropsIteratorCallsThatDoNotMatter) {
  Input input;
  input.iterator_calls = {{IteratorCallKind::open},         {IteratorCallKind::next, 7},
                          {IteratorCallKind::thread_state}, {IteratorCallKind::leave},
                          {IteratorCallKind::select, 1},    {IteratorCallKind::state}};
  const auto used_after_its_end = [](const Input& i) {
    const auto position = [&](IteratorCallKind kind) {
      return std::ranges::find(i.iterator_calls, kind, &IteratorCall::kind);
    };
    const auto leave = position(IteratorCallKind::leave);
    return leave != i.iterator_calls.end() &&
           std::find(leave, i.iterator_calls.end(), IteratorCall{IteratorCallKind::select, 1}) !=
               i.iterator_calls.end() &&
           position(IteratorCallKind::next) != i.iterator_calls.end();
  };
  const Input smallest = minimize(input, used_after_its_end, kBudget);
  const std::vector<IteratorCall> expected = {
      {IteratorCallKind::next, 0}, {IteratorCallKind::leave}, {IteratorCallKind::select, 1}};
  EXPECT_EQ(smallest.iterator_calls, expected);
}

TEST(Minimizer, DropsCallsToQueuesThatDoNotMatter) {
  Input input;
  input.walker = WalkerId::asgst_queue;
  input.queue_calls = {{QueueCallKind::register_queue, 9},
                       {QueueCallKind::enqueue, 3},
                       {QueueCallKind::poll},
                       {QueueCallKind::select, 1}};
  const auto polls = [](const Input& i) {
    return std::ranges::find(i.queue_calls, QueueCallKind::poll, &QueueCall::kind) !=
           i.queue_calls.end();
  };
  EXPECT_EQ(minimize(input, polls, kBudget).queue_calls,
            (std::vector<QueueCall>{{QueueCallKind::poll}}));
}

TEST(Minimizer, ResetsARawDepthAsAWhole) {
  Input input;
  input.call.depth = DepthKind::raw;
  input.call.raw_depth = -3;
  EXPECT_EQ(minimize(input, [](const Input&) { return true; }, kBudget), Input{});
}

TEST(Minimizer, ShrinksDeltasAsFarAsTheFindingGoes) {
  Input input;
  input.mutations = {set(Register::sp, ValueKind::real_sp, 4096)};
  const Input smallest = minimize(
      input,
      [](const Input& i) { return has(i, Register::sp) && i.mutations[0].value.delta >= 100; },
      kBudget);
  ASSERT_EQ(smallest.mutations.size(), 1U);
  EXPECT_EQ(smallest.mutations[0].value.delta, 128) << "the last half of 4096 above 99";
}

TEST(Minimizer, ResetsIndexAndRawValue) {
  Input input;
  input.mutations = {set(Register::sp, ValueKind::slot, 0, 12),
                     set(Register::pc, ValueKind::raw, 0, 0, 0xdead)};
  const Input smallest =
      minimize(input, [](const Input& i) { return i.mutations.size() == 2; }, kBudget);
  EXPECT_EQ(smallest.mutations[0].value.index, 0);
  EXPECT_EQ(smallest.mutations[1].value.raw, 0U);
}

TEST(Minimizer, AsksNoMoreOftenThanItsBudget) {
  for (const uint32_t budget : {0U, 1U, 3U}) {
    uint32_t asked = 0;
    minimize(
        everything_set(),
        [&](const Input&) {
          ++asked;
          return false;
        },
        budget);
    EXPECT_EQ(asked, budget);
  }
}

TEST(Minimizer, ReturnsOnlyWhatStillFailed) {
  const Input input = everything_set();
  EXPECT_EQ(minimize(input, [](const Input&) { return false; }, kBudget), input);
}

}  // namespace
}  // namespace framestorm
