// The example as a user runs it: its flame graph has the methods that used the time.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

TEST(SmallProfiler, DrawsWhatUsedTheTime) {
  const char* const jdk = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(jdk, nullptr) << "set FRAMESTORM_TEST_JDK to a JDK of `framestorm jdk build`, or run "
                             "`scripts/framestorm test`, which does";
  const TestFolder folder;
  const std::string graph = folder / "flames.html";
  const std::string command =
      std::string(jdk) +
      "/bin/java -agentpath:" FRAMESTORM_SMALL_PROFILER "=interval=500,output=" + graph +
      " " FRAMESTORM_WORKLOAD;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(graph);
  const std::string html{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(html.find("Workload.main"), std::string::npos) << html.substr(0, 500);
  EXPECT_NE(html.find("Workload.more"), std::string::npos);
  EXPECT_EQ(html.find("(unloaded)"), std::string::npos);
}

TEST(SmallProfiler, RefusesOptionsItDoesNotKnow) {
  const char* const jdk = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(jdk, nullptr);
  const std::string command =
      std::string(jdk) + "/bin/java -agentpath:" FRAMESTORM_SMALL_PROFILER "=fast -version";
  EXPECT_NE(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace framestorm
