#include <gtest/gtest.h>

#include <set>
#include <string>

#include "harness/input/input.h"
#include "harness/input/state.h"

namespace framestorm {
namespace {

template <typename Enum>
class Names : public testing::Test {};

using NamedEnums =
    testing::Types<ScenarioId, Mode, WalkerId, ValueKind, CodeKind, CodeAnchor, Register,
                   ThreadField, StackAnchor, MutationKind, DepthKind, ContextArg, EnvArg,
                   IteratorCallKind, QueueCallKind, StepEvent, StateKind>;
TYPED_TEST_SUITE(Names, NamedEnums);

TYPED_TEST(Names, AreUniqueAndParseBack) {
  std::set<std::string_view> seen;
  for (unsigned i = 0; i < static_cast<unsigned>(TypeParam::count); ++i) {
    const auto value = static_cast<TypeParam>(i);
    const std::string_view name = name_of(value);
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    TypeParam parsed = TypeParam::count;
    ASSERT_TRUE(parse_name(name, &parsed)) << name;
    EXPECT_EQ(parsed, value) << name;
  }
}

TYPED_TEST(Names, UnknownOnesAreRefused) {
  TypeParam parsed{};
  EXPECT_FALSE(parse_name("", &parsed));
  EXPECT_FALSE(parse_name("nonesuch", &parsed));
  EXPECT_FALSE(parse_name("invalid", &parsed));
  EXPECT_EQ(name_of(TypeParam::count), "invalid");
}

// The positions, not only the set: a swapped pair would pass everything else.
TEST(NamesOf, StandAtTheirEnumerators) {
  EXPECT_EQ(name_of(ScenarioId::c2_inlined), "c2-inlined");
  EXPECT_EQ(name_of(ScenarioId::deoptimized_caller), "deoptimized-caller");
  EXPECT_EQ(name_of(ScenarioId::virtual_remounted), "virtual-remounted");
  EXPECT_EQ(name_of(ScenarioId::vm_thread), "vm-thread");
  EXPECT_EQ(name_of(Mode::same_thread), "same-thread");
  EXPECT_EQ(name_of(WalkerId::asgst_env), "asgst-env");
  EXPECT_EQ(name_of(WalkerId::asgst_frame), "asgst-frame");
  EXPECT_EQ(name_of(WalkerId::jfr_trace), "jfr-trace");
  EXPECT_EQ(name_of(IteratorCallKind::open_frame), "open-frame");
  EXPECT_EQ(name_of(IteratorCallKind::open_null), "open-null");
  EXPECT_EQ(name_of(IteratorCallKind::open_to_java), "open-to-java");
  EXPECT_EQ(name_of(QueueCallKind::enqueuable), "enqueuable");
  EXPECT_EQ(name_of(QueueCallKind::exit), "exit");
  EXPECT_EQ(name_of(QueueCallKind::select_mark), "select-mark");
  EXPECT_EQ(name_of(QueueCallKind::throw_frozen), "throw-frozen");
  EXPECT_EQ(name_of(ValueKind::guard_page), "guard-page");
  EXPECT_EQ(name_of(ValueKind::raw), "raw");
  EXPECT_EQ(name_of(CodeAnchor::deopt_handler), "deopt-handler");
  EXPECT_EQ(name_of(Register::r0), "rax");
  EXPECT_EQ(name_of(Register::r5), "rdi");
  EXPECT_EQ(name_of(Register::r6), "r8");
  EXPECT_EQ(name_of(Register::r13), "r15");
  EXPECT_EQ(name_of(ThreadField::last_java_sp), "last-java-sp");
  EXPECT_EQ(name_of(DepthKind::exact_minus_1), "exact - 1");
}

}  // namespace
}  // namespace framestorm
