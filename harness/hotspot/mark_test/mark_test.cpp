// Frame marks of profile2.h: what MarkCases.java checks of them, way by way of leaving a frame, and
// whole programs, in which traces put together from marked parts have to be the whole ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

struct Program {
  const char* name;
  const char* options;
};

constexpr char kNatives[] =
    "--enable-native-access=ALL-UNNAMED -Dagent=" FRAMESTORM_MARK_AGENT " " FRAMESTORM_MARK_FOLDER;

// It has to end with 0.
void run_java(const std::string& arguments) {
  const char* const jdk = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(jdk, nullptr);
  const std::string command = std::string(jdk) + "/bin/java " + arguments;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

class MarkPrograms : public testing::TestWithParam<Program> {};

int64_t number(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? 0 : std::atoll(json.c_str() + at + key.size() + 4);
}

class MarkCases : public MarkPrograms {};

TEST_P(MarkCases, AreToldWhenTheirFrameIsLeft) {
  run_java(std::string(GetParam().options) +
           " -agentpath:" FRAMESTORM_MARK_AGENT
           "=natives -XX:CompileCommand=quiet "
           "-XX:CompileCommand=dontinline,MarkCases::* " +
           kNatives + "/MarkCases.java");
}

// The program counts the frames of the part that is walked; times are for people.
TEST(MarkCost, IsThatOfTheWalkedPart) { run_java(std::string(kNatives) + "/MarkCost.java"); }

TEST_P(MarkPrograms, PartsAreTheWhole) {
  const TestFolder folder;
  const std::string output = folder / "mark.json";
  run_java(std::string(GetParam().options) +
           " -agentpath:" FRAMESTORM_MARK_AGENT "=interval=1000,output=" + output +
           " " FRAMESTORM_QUEUE_WORKLOAD " 1");
  std::ifstream in(output);
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  SCOPED_TRACE(json);
  EXPECT_EQ(number(json, "wrong"), 0);
  EXPECT_EQ(number(json, "told_wrong"), 0);
  EXPECT_GT(number(json, "right"), 1000);
  EXPECT_GT(number(json, "told"), 1000);
  EXPECT_GT(number(json, "right"), 20 * number(json, "passed_by"))
      << "a walk comes to a mark that is set";
}

std::string name_of(const testing::TestParamInfo<Program>& info) { return info.param.name; }

const auto kModes = testing::Values(
    Program{"interpreter", "-Xint -XX:+UseSerialGC"},
    Program{"c1", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"},
    Program{"c2", "-XX:-TieredCompilation -XX:+UseZGC"}, Program{"tiered", "-XX:+UseG1GC"},
    Program{"shenandoah", "-XX:+UseShenandoahGC -XX:+PreserveFramePointer"});

INSTANTIATE_TEST_SUITE_P(Modes, MarkPrograms, kModes, name_of);
INSTANTIATE_TEST_SUITE_P(Modes, MarkCases, kModes, name_of);
// The outermost frame of a thread, too.
INSTANTIATE_TEST_SUITE_P(Compiled, MarkCases,
                         testing::Values(Program{
                             "c1",
                             "-Xcomp -XX:TieredStopAtLevel=1 "
                             "-XX:CompileCommand=compileonly,MarkCases*::* "
                             "-XX:CompileCommand=compileonly,java.lang.Thread::run*"}),
                         name_of);

}  // namespace
}  // namespace framestorm
