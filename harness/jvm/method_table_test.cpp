#include "harness/jvm/methods.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace framestorm {
namespace {

// As in HotSpot up to JDK 25, an ID is where the address of its method stands.
struct Method {
  const void* table = nullptr;
  const void* bytecodes = nullptr;
};

class MethodTableTest : public testing::Test {
 protected:
  MethodTableTest() {
    table_.set_mark(offsetof(Method, bytecodes));
    for (size_t i = 0; i < ids_.size(); ++i) {
      place(i, i);
      table_.add(id(i), {"of." + std::to_string(i)});
    }
    table_.absorb();
  }

  jmethodID id(size_t index) { return reinterpret_cast<jmethodID>(&ids_[index]); }
  // The newest version of a method, at one of the places for methods.
  void place(size_t index, size_t at) {
    ids_[index] = &memory_[at];
    memory_[at].bytecodes = &bytecodes_[versions_++];
  }
  jmethodID at(size_t place) { return table_.id_of(&memory_[place]); }

  std::array<Method, 4> memory_;
  std::array<char, 16> bytecodes_ = {};
  size_t versions_ = 0;
  std::array<const void*, 2> ids_ = {};
  MethodTable table_;
};

TEST_F(MethodTableTest, AReplacedMethodStaysWhatItWas) {
  EXPECT_EQ(at(0), id(0));
  place(0, 2);
  EXPECT_EQ(at(0), id(0));
  EXPECT_EQ(at(0), id(0));
}

TEST_F(MethodTableTest, AMethodThatComesWhereAnotherWasIsItself) {
  EXPECT_EQ(at(0), id(0));
  EXPECT_EQ(at(1), id(1));
  place(0, 2);
  EXPECT_EQ(at(0), id(0));
  place(1, 0);
  EXPECT_EQ(at(0), id(1));
  EXPECT_EQ(at(1), id(1)) << "its old version";
}

TEST_F(MethodTableTest, TheSameOfOneThatWasNeverAskedFor) {
  EXPECT_EQ(at(1), id(1));
  place(0, 2);
  place(1, 0);
  EXPECT_EQ(at(0), id(1));
}

TEST_F(MethodTableTest, AnOldVersionWhereAnotherWasIsNotThatOne) {
  EXPECT_EQ(at(0), id(0));
  place(0, 2);
  EXPECT_EQ(at(0), id(0));
  place(1, 0);
  place(1, 3);
  EXPECT_EQ(at(0), nullptr);
  EXPECT_EQ(at(3), id(1));
}

// As in HotSpot from JDK 26 on.
std::array<const void*, 3> counted = {};
const void* look_up(jmethodID id) {
  const auto number = reinterpret_cast<uintptr_t>(id);
  return number < counted.size() ? counted[number] : nullptr;
}

TEST(MethodTableOfNumbers, AnIdIsLookedUp) {
  const std::array<Method, 2> memory = {};
  MethodTable table;
  table.set_mark(offsetof(Method, bytecodes));
  table.set_look_up(&look_up);
  EXPECT_TRUE(table.finds_methods());
  const auto one = reinterpret_cast<jmethodID>(uintptr_t{1});
  const auto two = reinterpret_cast<jmethodID>(uintptr_t{2});
  counted = {nullptr, memory.data(), &memory[1]};
  table.add(one, {"one"});
  table.absorb();
  EXPECT_EQ(table.id_of(memory.data()), one);
  EXPECT_FALSE(table.was_counted(two));
  table.add(two, {"two"});
  table.absorb();
  EXPECT_EQ(table.id_of(&memory[1]), two);
  EXPECT_TRUE(table.was_counted(one) && table.was_counted(two));
  EXPECT_FALSE(table.was_counted(nullptr));
}

TEST(MethodTableOfNumbers, WithoutALookUpNoMethodIsFound) {
  const Method method;
  MethodTable table;
  table.set_look_up(nullptr);
  table.add(reinterpret_cast<jmethodID>(uintptr_t{1}), {"one"});
  table.absorb();
  EXPECT_FALSE(table.finds_methods());
  EXPECT_EQ(table.id_of(&method), nullptr);
}

}  // namespace
}  // namespace framestorm
