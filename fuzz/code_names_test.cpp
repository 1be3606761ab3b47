#include "fuzz/code_names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

NamedCode named(CodeKind kind, uint8_t tier, std::string name, uint32_t size) {
  return {{kind, tier, CodeAnchor::entry, std::move(name)}, size};
}

std::set<std::string> picks(const CodeNameList& list) {
  std::set<std::string> names;
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    if (const NamedCode* code = list.pick(rng)) {
      names.insert(code->ref.name + " " + std::to_string(code->ref.tier) + " " +
                   std::to_string(code->size));
    }
  }
  return names;
}

class CodeNameListTest : public testing::Test {
 protected:
  const TestFolder folder_;
  const std::filesystem::path file_ = folder_ / "code-names";
};

TEST_F(CodeNameListTest, ComesBackFromItsFile) {
  CodeNameList list;
  list.add(named(CodeKind::nmethod, 4, "framestorm/C2Inlined.spin", 640));
  list.add(named(CodeKind::codelet, 0, "return entry points", 32));
  list.save(file_);
  CodeNameList loaded;
  loaded.add(named(CodeKind::stub, 0, "gone", 1));
  ASSERT_TRUE(loaded.load(file_));
  EXPECT_EQ(picks(loaded),
            (std::set<std::string>{"framestorm/C2Inlined.spin 4 640", "return entry points 0 32"}));
}

TEST_F(CodeNameListTest, KeepsWhatItHasWhenTheFileIsNoList) {
  CodeNameList list;
  list.add(named(CodeKind::stub, 0, "kept", 1));
  EXPECT_FALSE(list.load(file_));
  std::ofstream(file_) << "1 0 12 stub\nno list\n";
  EXPECT_FALSE(list.load(file_));
  std::ofstream(file_) << "77 0 12 stub\n";
  EXPECT_FALSE(list.load(file_));
  EXPECT_EQ(picks(list), (std::set<std::string>{"kept 0 1"}));
}

TEST_F(CodeNameListTest, WhatFramesReturnToIsPickedOftenAmongThousands) {
  CodeNameList list;
  for (int i = 0; i < 4000; ++i) {
    list.add(named(CodeKind::stub, 0, "vtable stub " + std::to_string(i), 32));
  }
  list.add(named(CodeKind::stub, 0, "cont_returnBarrier", 300));
  list.save(file_);
  CodeNameList loaded;
  ASSERT_TRUE(loaded.load(file_));
  EXPECT_TRUE(picks(list).contains("cont_returnBarrier 0 300"));
  EXPECT_TRUE(picks(loaded).contains("cont_returnBarrier 0 300"));
}

// Of 200.
int picks_of_entry(const std::string& stub) {
  CodeNameList list;
  list.add(named(CodeKind::stub, 0, stub, 300));
  Rng rng(1);
  int exact = 0;
  for (int i = 0; i < 200; ++i) {
    SymbolicValue value;
    pick_code(&list, rng, &value);
    exact += value.code.anchor == CodeAnchor::entry && value.delta == 0 ? 1 : 0;
  }
  return exact;
}

TEST_F(CodeNameListTest, TheExactEntryIsPickedOften) {
  EXPECT_GT(picks_of_entry("vtable stub 7"), 10);
  EXPECT_GT(picks_of_entry("cont_returnBarrier"), 90);
}

TEST_F(CodeNameListTest, PicksNothingFromNothing) {
  EXPECT_TRUE(CodeNameList().empty());
  EXPECT_TRUE(picks(CodeNameList()).empty());
}

}  // namespace
}  // namespace framestorm
