#include "harness/executor/signature.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <memory>

namespace framestorm {
namespace {

// Functions with room inside: a key must not depend on where in one a finding is.
#define FRAMESTORM_TEST_FUNCTION(name, constant)                      \
  extern "C" [[gnu::noinline, gnu::used]] uint64_t name(uint64_t x) { \
    volatile uint64_t value = x;                                      \
    for (int i = 0; i < 3; ++i) value = value * (constant) + 1;       \
    return value;                                                     \
  }
FRAMESTORM_TEST_FUNCTION(signature_test_a, 3)
FRAMESTORM_TEST_FUNCTION(signature_test_b, 5)
FRAMESTORM_TEST_FUNCTION(signature_test_c, 7)
FRAMESTORM_TEST_FUNCTION(signature_test_d, 9)
#undef FRAMESTORM_TEST_FUNCTION

uintptr_t in(uint64_t (*function)(uint64_t), uintptr_t offset = 8) {
  return reinterpret_cast<uintptr_t>(function) + offset;
}

Finding finding(std::initializer_list<uintptr_t> stack) {
  Finding result;
  result.fault.signo = SIGSEGV;
  for (const uintptr_t pc : stack) result.fault.stack[result.fault.stack_size++] = pc;
  return result;
}

class SignatureTest : public testing::Test {
 protected:
  uint64_t key(const Finding& finding) { return signatures_.key_of(finding); }
  uint64_t key(std::initializer_list<uintptr_t> stack) { return key(finding(stack)); }
  Signatures signatures_;
};

TEST_F(SignatureTest, IsTheSameAnywhereInAFunction) {
  EXPECT_EQ(key({in(signature_test_a, 4), in(signature_test_b, 8)}),
            key({in(signature_test_a, 12), in(signature_test_b, 16)}));
}

TEST_F(SignatureTest, TellsFunctionsApart) {
  EXPECT_NE(key({in(signature_test_a)}), key({in(signature_test_b)}));
  EXPECT_NE(key({in(signature_test_a), in(signature_test_b)}),
            key({in(signature_test_a), in(signature_test_c)}));
  EXPECT_NE(key({in(signature_test_a), in(signature_test_b)}),
            key({in(signature_test_b), in(signature_test_a)}));
}

TEST_F(SignatureTest, LooksAtTheInnermostFramesOnly) {
  EXPECT_EQ(
      key({in(signature_test_a), in(signature_test_b), in(signature_test_c), in(signature_test_d)}),
      key({in(signature_test_a), in(signature_test_b), in(signature_test_c)}));
  EXPECT_NE(key({in(signature_test_a), in(signature_test_b), in(signature_test_c)}),
            key({in(signature_test_a), in(signature_test_b), in(signature_test_d)}));
}

TEST_F(SignatureTest, CountsRecursionOnce) {
  EXPECT_EQ(key({in(signature_test_a), in(signature_test_b), in(signature_test_b, 12),
                 in(signature_test_b, 16), in(signature_test_c)}),
            key({in(signature_test_a), in(signature_test_b), in(signature_test_c)}));
}

TEST_F(SignatureTest, TellsKindClauseAndSignalApart) {
  const Finding fault = finding({in(signature_test_a)});
  Finding other = fault;
  other.kind = FindingKind::hang;
  EXPECT_NE(key(fault), key(other));
  other = fault;
  other.clause = "malloc";
  EXPECT_NE(key(fault), key(other));
  other = fault;
  other.fault.signo = SIGBUS;
  EXPECT_NE(key(fault), key(other));
}

TEST_F(SignatureTest, DoesNotDependOnDetailInputOrAddresses) {
  const Finding fault = finding({in(signature_test_a)});
  Finding other = fault;
  other.detail = "another sentence";
  other.input.scenario = ScenarioId::c1;
  other.fault.address = 0x1234;
  other.fault.registers[0] = 1;
  EXPECT_EQ(key(fault), key(other));
}

TEST_F(SignatureTest, WithoutAStackIsItsVictims) {
  Finding one = finding({});
  one.kind = FindingKind::hang;
  one.input.scenario = ScenarioId::c1;
  Finding other = one;
  EXPECT_EQ(key(one), key(other));
  other.input.scenario = ScenarioId::osr;
  EXPECT_NE(key(one), key(other)) << "triage has a bucket for each, and each has its own count";
}

Finding contract(const std::string& clause, const std::string& detail) {
  Finding result;
  result.kind = FindingKind::contract;
  result.clause = clause;
  result.detail = detail;
  return result;
}

TEST_F(SignatureTest, OfAContractIsTheSameForAllVictims) {
  Finding one = contract("bci-out-of-range", "frame 3 a/B.c has bci 99, its last is 12");
  Finding other = contract("bci-out-of-range", "frame 0 D.e has bci -7, its last is 4");
  one.input.scenario = ScenarioId::c1;
  other.input.scenario = ScenarioId::osr;
  EXPECT_EQ(key(one), key(other));
}

TEST_F(SignatureTest, OfAContractTellsClausesDeedsAndWalkersApart) {
  const Finding one = contract("victim-changed", "the stack above sp differs at byte 144");
  EXPECT_NE(key(one), key(contract("context-changed", one.detail)));
  EXPECT_NE(key(one), key(contract("victim-changed", "the thread differs at byte 144")));
  Finding other = one;
  other.input.walker = WalkerId::asgst;
  EXPECT_NE(key(one), key(other));
}

TEST(DetailClass, LeavesOutWhatDiffersBetweenVictims) {
  const std::pair<const char*, const char*> kExamples[] = {
      {"frame 3 java/lang/String.hash has bci 99, its last is 12",
       "frame * has bci *, its last is *"},
      {"result -3 (unknown_not_Java) in thread state 8",
       "result * (unknown_not_Java) in thread state *"},
      {"kind 0x20, accepted 0x4", "kind *, accepted *"},
      {"frame 2 is framestorm/C1.spin, expected framestorm/Osr.loop or the end", "frame * is *"},
      {"Java frame 0 is a/B.c@12, there ?@-1", "Java frame * is *, there *"},
      {"the trace ends in B.c, the thread's stack in ?",
       "the trace ends in *, the thread's stack in *"},
      {"what is stored of c1 ends early: frame 1 is a/B.c",
       "what is stored of c1 ends early: frame * is *"},
      {"same count, other frames", "same count, other frames"}};
  for (const auto& [detail, wanted] : kExamples) {
    EXPECT_EQ(detail_class(contract("any", detail)), wanted);
  }
  Finding fault = contract("", "Segmentation fault inside the walk");
  fault.kind = FindingKind::fault;
  EXPECT_EQ(detail_class(fault), "");
}

TEST_F(SignatureTest, TakesAllPlacesOutsideModulesForOne) {
  int on_stack = 0;
  const std::unique_ptr<int> on_heap = std::make_unique<int>(0);
  EXPECT_EQ(key({reinterpret_cast<uintptr_t>(&on_stack), in(signature_test_a)}),
            key({reinterpret_cast<uintptr_t>(on_heap.get()), in(signature_test_a)}));
}

}  // namespace
}  // namespace framestorm
