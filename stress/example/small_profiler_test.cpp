// The examples as a user runs them: what they write has the methods that used the time.
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

TEST(QueueProfiler, CountsTheStacksThatUsedTheTime) {
  const char* const jdk = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(jdk, nullptr);
  const TestFolder folder;
  const std::string stacks = folder / "stacks.txt";
  const std::string command =
      std::string(jdk) +
      "/bin/java -agentpath:" FRAMESTORM_QUEUE_PROFILER "=interval=500,output=" + stacks +
      " " FRAMESTORM_WORKLOAD;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  std::ifstream in(stacks);
  size_t of_less = 0, of_more = 0;
  for (std::string line; std::getline(in, line);) {
    const size_t count = std::stoul(line.substr(line.rfind(' ')));
    if (line.find("Workload.main;Workload.more") != std::string::npos) of_more += count;
    if (line.find("Workload.main;Workload.less") != std::string::npos) of_less += count;
  }
  EXPECT_GT(of_less, 0U);
  EXPECT_GT(of_more, of_less) << "twice the time";
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
