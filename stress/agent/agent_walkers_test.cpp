// The agent with the walkers of the instrumented JDK.
#include <gtest/gtest.h>

#include "stress/agent/agent_fixture.h"

namespace framestorm::stress {
namespace {

using AgentWalkers = AgentTest;

TEST_F(AgentWalkers, AllWalkInTheHandler) {
  const Ran ran =
      run("walker=asgct+asgst+asgct2+asgct2-packed+asgst-iterator+asgst-frame,costly=50",
          "2 3000 2 100");
  EXPECT_EQ(ran.status, 0) << ran.output;
  for (const char* walker :
       {"asgct", "asgst", "asgct2", "asgct2-packed", "asgst-iterator", "asgst-frame"}) {
    EXPECT_GT(ran.stats["frames"][walker]["count"], 50) << walker;
  }
  EXPECT_EQ(ran.stats["contained"], 0) << ran.findings;
  EXPECT_GT(ran.stats["checks"]["agreement"]["made"], 0);
  // The program has no virtual threads.
  EXPECT_EQ(ran.stats["continuations"],
            (nlohmann::json{
                {"barriers", 0}, {"entries", 0}, {"entries_missing", 0}, {"speculative", 0}}));
}

// As GetStackTrace says it, of any interrupted thread.
TEST_F(AgentWalkers, TracesEndWhereTheThreadBegan) {
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const Ran ran = run(std::string("walker=asgst,costly=2,mode=") + mode, "2 3000 2 100");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.stats["contained"], 0) << mode << ran.findings;
    EXPECT_EQ(ran.stats["checks"]["gst"]["broken"], 0) << mode << ran.findings;
    EXPECT_GT(ran.stats["checks"]["gst"]["made"], 0) << mode;
    EXPECT_GT(ran.stats["checks"]["agreement"]["made"], 500) << mode;
  }
}

TEST_F(AgentWalkers, AllWalkFromOutside) {
  const Ran ran = run(
      "walker=asgct+asgst+asgst-env+asgst-thread+asgct2+asgct2-packed+asgst-iterator+asgst-frame,"
      "mode=separate-thread,interval=200us,costly=50",
      "2 3000 2 100");
  EXPECT_EQ(ran.status, 0) << ran.output;
  for (const char* walker : {"asgct", "asgst", "asgst-env", "asgst-thread", "asgct2",
                             "asgct2-packed", "asgst-iterator", "asgst-frame"}) {
    EXPECT_GT(ran.stats["frames"][walker]["count"], 10) << walker;
  }
  EXPECT_EQ(ran.stats["contained"], 0) << ran.findings;
}

}  // namespace
}  // namespace framestorm::stress
