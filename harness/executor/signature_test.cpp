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

TEST_F(SignatureTest, TakesAllPlacesOutsideModulesForOne) {
  int on_stack = 0;
  const std::unique_ptr<int> on_heap = std::make_unique<int>(0);
  EXPECT_EQ(key({reinterpret_cast<uintptr_t>(&on_stack), in(signature_test_a)}),
            key({reinterpret_cast<uintptr_t>(on_heap.get()), in(signature_test_a)}));
}

}  // namespace
}  // namespace framestorm
