#include "harness/input/canonical.h"

#include <gtest/gtest.h>

#include "harness/input/random_input.h"

namespace framestorm {
namespace {

TEST(Canonical, NamesAreShortenedAndCleaned) {
  std::string name = "a\"b\\c\n\x7f\x80 d";
  canonicalise_name(&name);
  EXPECT_EQ(name, "a_b_c___ d");
  name.assign(kMaxSymbolName + 5, 'x');
  canonicalise_name(&name);
  EXPECT_EQ(name, std::string(kMaxSymbolName, 'x'));
}

TEST(Canonical, FieldsThatTheKindDoesNotUseAreReset) {
  Mutation mutation;
  mutation.kind = MutationKind::set_thread_field;
  mutation.reg = Register::sp;
  mutation.anchor = StackAnchor::fp;
  mutation.offset = 3;
  mutation.field = ThreadField::last_java_pc;
  mutation.value = {ValueKind::real_sp, -8, 4, 7, {CodeKind::nmethod, 4, CodeAnchor::end, "x"}};
  canonicalise(&mutation);
  Mutation expected;
  expected.kind = MutationKind::set_thread_field;
  expected.field = ThreadField::last_java_pc;
  expected.value.kind = ValueKind::real_sp;
  expected.value.delta = -8;
  EXPECT_EQ(mutation, expected);
}

TEST(Canonical, PartsOfTheHaltAndTheCallDependOnTheirKind) {
  Input input;
  input.halt.code.name = "call_stub";
  input.halt.delta = 5;
  input.halt.has_frame_offset = true;
  input.halt.frame_offset = 64;
  input.call.raw_depth = 17;
  input.mutations.resize(kMaxMutations + 3);
  canonicalise(&input);
  Input expected;
  expected.mutations.resize(kMaxMutations);
  EXPECT_EQ(input, expected);

  input.halt.any = false;
  input.halt.code = {CodeKind::codelet, 3, CodeAnchor::end, "return"};
  input.halt.frame_offset = 64;
  input.call.depth = DepthKind::raw;
  input.call.raw_depth = 17;
  canonicalise(&input);
  EXPECT_EQ(input.halt.code.tier, 0);
  EXPECT_EQ(input.halt.code.name, "return");
  EXPECT_EQ(input.halt.frame_offset, 0U);
  EXPECT_EQ(input.call.raw_depth, 17);
}

TEST(Canonical, IteratorCallsKeepTheirBounds) {
  Input input;
  input.iterator_calls.assign(kMaxIteratorCalls + 1, {IteratorCallKind::next, 200});
  input.iterator_calls[1] = {IteratorCallKind::leave, 3};
  canonicalise(&input);
  EXPECT_EQ(input.iterator_calls.size(), kMaxIteratorCalls);
  EXPECT_EQ(input.iterator_calls[0].argument, kMaxIteratorArgument);
  EXPECT_EQ(input.iterator_calls[1].argument, 0) << "a handler is left once";
}

TEST(Canonical, CallsAreOfTheWalkersKind) {
  Input input;
  input.iterator_calls = {{IteratorCallKind::drain}};
  input.queue_calls.assign(kMaxQueueCalls + 1, {QueueCallKind::enqueue, 200});
  input.queue_calls[1] = {QueueCallKind::poll, 3};
  Input of_queues = input;
  of_queues.walker = WalkerId::asgst_queue;
  canonicalise(&input);
  EXPECT_EQ(input.iterator_calls.size(), 1U);
  EXPECT_TRUE(input.queue_calls.empty());
  canonicalise(&of_queues);
  EXPECT_TRUE(of_queues.iterator_calls.empty());
  ASSERT_EQ(of_queues.queue_calls.size(), kMaxQueueCalls);
  EXPECT_EQ(of_queues.queue_calls[0].argument, kMaxIteratorArgument);
  EXPECT_EQ(of_queues.queue_calls[1].argument, 0);
}

TEST(Canonical, TierAndMisalignmentKeepTheirBounds) {
  CodeRef code{CodeKind::nmethod, 9, CodeAnchor::entry, "m"};
  canonicalise(&code);
  EXPECT_EQ(code.tier, 0);
  SymbolicValue value;
  value.kind = ValueKind::misaligned;
  value.delta = -1;
  canonicalise(&value);
  EXPECT_EQ(value.delta, 3);
}

TEST(Canonical, ResetEqualsADefault) {
  TestRng rng(11);
  for (int i = 0; i < 1000; ++i) {
    Mutation mutation = random_mutation(rng);
    reset(&mutation);
    EXPECT_EQ(mutation, Mutation{});
  }
}

}  // namespace
}  // namespace framestorm
