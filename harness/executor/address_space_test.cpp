// Symbolic positions on a live JVM: what describe() says of an address means that address again.
#include "harness/executor/address_space.h"

#include <algorithm>
#include <array>
#include <map>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

using jvm_test::JvmTest;

class AddressSpaceTest : public JvmTest {
 protected:
  void start_halted() {
    start({ScenarioId::c1, ScenarioId::interpreted_recursion});
    if (HasFatalFailure()) return;
    halt_in_java(ScenarioId::c1);
  }
  CodeMap& map() { return session().jvm().code_map(); }
  Victim& halted() { return victim(ScenarioId::c1); }

  // The address that a value in text form means; reports a failure when there is none.
  uint64_t address_of(const std::string& text) {
    Input input;
    TextError error;
    const bool parsed =
        parse_text("framestorm-input 1\nscenario c1\nregister pc = " + text + "\n", &input, &error);
    EXPECT_TRUE(parsed) << text << ": " << error.message;
    if (!parsed) return 0;
    const auto address = executor().addresses().resolve(input.mutations.at(0).value, halted(),
                                                        session().victims().halted(), 0);
    EXPECT_TRUE(address) << text;
    return address.value_or(0);
  }
};

TEST_F(AddressSpaceTest, EveryPositionInTheCodeCacheComesBack) {
  start_halted();
  ASSERT_FALSE(HasFatalFailure());
  // A name may stand for several blobs (one method compiled twice, unnamed stubs): the first is
  // meant.
  std::map<std::tuple<CodeKind, uint8_t, std::string>, int> named;
  for (const CodeEntry& entry : map().entries()) ++named[{entry.kind, entry.tier, entry.name}];
  std::map<CodeKind, int> checked;
  for (const CodeEntry& entry : map().entries()) {
    if (named[{entry.kind, entry.tier, entry.name}] > 1) continue;
    for (const uintptr_t offset : {uintptr_t{0}, uintptr_t{1}, (entry.end - entry.begin) / 2}) {
      const uintptr_t address = entry.begin + offset;
      if (map().find(address) != &entry) continue;  // a smaller one within
      const CodePosition position = map().describe(address).value_or(CodePosition{});
      EXPECT_EQ(map().resolve(position.ref).value_or(0) + static_cast<uintptr_t>(position.delta),
                address);
      EXPECT_EQ(address_of(executor().addresses().describe(address, halted())), address);
      ++checked[entry.kind];
    }
  }
  EXPECT_GT(checked[CodeKind::nmethod], 10);
  EXPECT_GT(checked[CodeKind::stub], 50);
  EXPECT_GT(checked[CodeKind::codelet], 200);
}

TEST_F(AddressSpaceTest, FunctionsOfLibjvmComeBack) {
  start_halted();
  ASSERT_FALSE(HasFatalFailure());
  // A leaf call of compiled code, in every JDK.
  const CodeRef rethrow = {CodeKind::function, 0, CodeAnchor::entry,
                           "_ZN11OptoRuntime9rethrow_CEP7oopDescP10JavaThreadPh"};
  const auto begin = map().resolve(rethrow);
  ASSERT_TRUE(begin);
  const auto position = map().describe(*begin + 3);
  ASSERT_TRUE(position);
  EXPECT_EQ(position->ref, rethrow);
  EXPECT_EQ(position->delta, 3);
  EXPECT_EQ(address_of(executor().addresses().describe(*begin + 3, halted())), *begin + 3);
  const auto end = map().resolve({CodeKind::function, 0, CodeAnchor::end, rethrow.name});
  EXPECT_GT(end, begin);
  const auto behind = map().describe(*end);
  EXPECT_TRUE(!behind || behind->ref.name != rethrow.name);
  EXPECT_FALSE(map().resolve({CodeKind::function, 0, CodeAnchor::entry, "no_such_function"}));
}

TEST_F(AddressSpaceTest, PositionsOnTheStackComeBack) {
  start_halted();
  ASSERT_FALSE(HasFatalFailure());
  for (const intptr_t offset : {intptr_t{0}, intptr_t{8}, intptr_t{-64}, intptr_t{333}}) {
    const uintptr_t address = halted().sp + static_cast<uintptr_t>(offset);
    EXPECT_EQ(address_of(executor().addresses().describe(address, halted())), address);
  }
}

TEST_F(AddressSpaceTest, AnchorsOfANmethodAreInIt) {
  start_halted();
  ASSERT_FALSE(HasFatalFailure());
  const CodeEntry* entry = map().find(halted().pc);
  ASSERT_NE(entry, nullptr);
  ASSERT_EQ(entry->name, "framestorm/C1.spin");
  EXPECT_EQ(entry->tier, 1);
  const uint64_t begin = address_of("nmethod \"framestorm/C1.spin\" tier 1 entry");
  const uint64_t verified = address_of("nmethod \"framestorm/C1.spin\" tier 1 verified-entry");
  const uint64_t deopt = address_of("nmethod \"framestorm/C1.spin\" tier 1 deopt-handler");
  const uint64_t end = address_of("nmethod \"framestorm/C1.spin\" tier 1 end");
  EXPECT_EQ(begin, entry->begin);
  EXPECT_GT(verified, begin) << "behind the check of the receiver's class";
  EXPECT_LE(verified, halted().pc);
  EXPECT_GT(deopt, halted().pc) << "behind the method's own code";
  EXPECT_LE(deopt, end);
  EXPECT_EQ(end, entry->end);
}

// What a template begins with: the first instruction of the entry of a Java method reads the
// ConstMethod of the Method in rbx (templateInterpreterGenerator_x86.cpp, generate_normal_entry).
TEST_F(AddressSpaceTest, CodeletsBeginWithTheirFirstInstruction) {
  start({ScenarioId::parked});
  ASSERT_FALSE(HasFatalFailure());
  const auto entry = session().jvm().code_map().resolve(
      {.kind = CodeKind::codelet, .name = "method entry point (kind = zerolocals)"});
  ASSERT_TRUE(entry);
  const auto* const code = reinterpret_cast<const uint8_t*>(*entry);
  const std::array<uint8_t, 4> load = {0x48, 0x8b, 0x53, 0x08};  // mov rdx, [rbx + 8]
  std::array<uint8_t, 4> found = {};
  std::copy_n(code, found.size(), found.begin());
  EXPECT_EQ(found, load);
}

TEST_F(AddressSpaceTest, UnknownNamesAndTiersDoNotResolve) {
  start_halted();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_FALSE(map().resolve({CodeKind::stub, 0, CodeAnchor::entry, "no such stub"}));
  EXPECT_FALSE(map().resolve({CodeKind::stub, 0, CodeAnchor::entry, "framestorm/C1.spin"}));
  EXPECT_FALSE(map().resolve({CodeKind::nmethod, 4, CodeAnchor::entry, "framestorm/C1.spin"}));
  EXPECT_TRUE(map().resolve({CodeKind::nmethod, 1, CodeAnchor::entry, "framestorm/C1.spin"}));
  EXPECT_TRUE(map().resolve({CodeKind::nmethod, 0, CodeAnchor::entry, "framestorm/C1.spin"}));
}

}  // namespace
}  // namespace framestorm
