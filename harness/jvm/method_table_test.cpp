#include "harness/jvm/methods.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace framestorm {
namespace {

// As in HotSpot, an ID is where the address of its method stands.
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

}  // namespace
}  // namespace framestorm
