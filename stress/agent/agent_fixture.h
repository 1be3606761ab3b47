// Shared by the tests that run java with the agent. FRAMESTORM_TEST_JDK is the JDK under test.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace framestorm::stress {

// One process, and what the agent left in its folder.
struct Ran {
  int status = -1;     // of the process: 0 is success
  std::string output;  // standard output and error
  std::string folder;
  nlohmann::json stats;  // the last line; empty when there is none
  std::string findings;  // all lines

  std::string read(const std::string& name) const;
  // The first finding of a kind and clause; empty when there is none.
  nlohmann::json finding(const std::string& kind, const std::string& clause) const;
  bool has_unfinished_walk() const;
};

// Samples and what was lost of them, as many as ticks.
uint64_t accounted(const nlohmann::json& stats);

class AgentTest : public testing::Test {
 public:
  AgentTest();
  ~AgentTest() override;

 protected:
  // programs/Sampled.java with its arguments, under the agent with these options and a folder.
  // `launcher`: a command that java is given to, like prlimit.
  Ran run(const std::string& options, const std::string& arguments,
          const std::string& launcher = "");
  // The same, but the agent is loaded into the process once it runs, which lasts two seconds longer
  // than the loading takes.
  Ran attach(const std::string& options, const std::string& arguments);
  // The agent that run() takes.
  std::string agent_ = FRAMESTORM_AGENT;

 private:
  Ran collect(int status, const std::string& folder, const std::string& output_file) const;
  std::string jdk_;
  std::string sampled_ = FRAMESTORM_SAMPLED;  // the program, as `java` takes it
  std::string folder_;
  int runs_ = 0;
};

}  // namespace framestorm::stress
