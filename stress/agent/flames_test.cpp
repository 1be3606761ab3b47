#include "stress/agent/flames.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "harness/base/test_folder.h"

namespace framestorm::stress {
namespace {

jmethodID id(uintptr_t number) { return reinterpret_cast<jmethodID>(number); }

class FlamesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [number, name] :
         std::map<uintptr_t, std::string>{{1, "a/Main.main"}, {2, "a/B.run"}, {3, "a/B.run"}}) {
      methods_.add(id(number), {name, 0});
    }
    methods_.absorb();
  }

  static Frame frame(uintptr_t method, FrameType type = FrameType::compiled) {
    Frame made;
    made.method = id(method);
    made.type = type;
    return made;
  }

  std::map<std::string, uint64_t> written(const Flames& flames) {
    const TestFolder folder;
    const std::filesystem::path path = folder / "traces.folded";
    flames.write(path, methods_);
    std::map<std::string, uint64_t> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      const size_t space = line.rfind(' ');
      EXPECT_TRUE(lines.emplace(line.substr(0, space), std::stoull(line.substr(space + 1))).second)
          << line;
    }
    return lines;
  }

  using Lines = std::map<std::string, uint64_t>;
  MethodTable methods_;
};

TEST_F(FlamesTest, TracesFoldByMethodAndKind) {
  Flames flames;
  Frame inner = frame(2);
  for (int bci = 0; bci < 3; ++bci) {
    inner.bci = bci;
    flames.add(std::vector{inner, frame(1, FrameType::interpreted)});
  }
  flames.add(std::vector{frame(3), frame(1, FrameType::interpreted)});  // another version of it
  flames.add(std::vector{frame(2, FrameType::inlined), frame(1, FrameType::interpreted)});
  flames.add(std::vector{frame(1, FrameType::interpreted)});
  flames.add(std::vector{frame(9), frame(0, FrameType::cpp)});
  flames.add(std::vector{frame(0, FrameType::native), frame(0, FrameType::stub)});
  EXPECT_EQ(written(flames), (Lines{{"a.Main.main_[0];a.B.run_[j]", 4},
                                    {"a.Main.main_[0];a.B.run_[i]", 1},
                                    {"a.Main.main_[0]", 1},
                                    {"native_[c];?_[j]", 1},
                                    {"stub_[s];?.native_[n]", 1}}));
}

TEST_F(FlamesTest, WhatIsTooNarrowIsItsCallersOther) {
  Flames flames;
  const uint64_t traces = 3 * Flames::kNarrowest;
  for (uint64_t i = 0; i + 3 < traces; ++i) flames.add(std::vector{frame(1)});
  flames.add(std::vector{frame(9), frame(3)});  // an outermost frame of its own
  flames.add(std::vector{frame(2), frame(1)});
  flames.add(std::vector{frame(9), frame(1)});
  EXPECT_EQ(written(flames), (Lines{{"a.Main.main_[j]", traces - 3},
                                    {"a.Main.main_[j];[other]", 2},
                                    {"a.B.run_[j];[other]", 1}}));
}

TEST_F(FlamesTest, ThereIsAnEndToHowManyAreToldApart) {
  Flames flames(3);  // the root and two methods
  flames.add(std::vector{frame(2), frame(1)});
  flames.add(std::vector{frame(9), frame(2), frame(1)});
  flames.add(std::vector{frame(9)});
  flames.add(std::vector{frame(2), frame(1)});
  EXPECT_EQ(written(flames), (Lines{{"a.Main.main_[j];a.B.run_[j]", 2},
                                    {"a.Main.main_[j];a.B.run_[j];[other]", 1},
                                    {"[other]", 1}}));
}

}  // namespace
}  // namespace framestorm::stress
