// The agent with the walkers of the instrumented JDK.
#include <gtest/gtest.h>

#include "stress/agent/agent_test.h"

namespace framestorm::stress {
namespace {

using AgentWalkers = AgentTest;

TEST_F(AgentWalkers, AllWalkInTheHandler) {
  const Ran ran =
      run("walker=asgct+asgst+asgct2+asgst-iterator+asgst-frame,costly=50", "2 3000 2 100");
  EXPECT_EQ(ran.status, 0) << ran.output;
  for (const char* walker : {"asgct", "asgst", "asgct2", "asgst-iterator", "asgst-frame"}) {
    EXPECT_GT(ran.stats["frames"][walker]["count"], 50) << walker;
  }
  EXPECT_EQ(ran.stats["contained"], 0) << ran.findings;
  EXPECT_GT(ran.stats["checks"]["agreement"]["made"], 0);
}

TEST_F(AgentWalkers, AllWalkFromOutside) {
  const Ran ran =
      run("walker=asgct+asgst+asgst-env+asgst-thread+asgct2+asgst-iterator+asgst-frame,"
          "mode=separate-thread,interval=200us,costly=50",
          "2 3000 2 100");
  EXPECT_EQ(ran.status, 0) << ran.output;
  for (const char* walker :
       {"asgct", "asgst", "asgst-env", "asgst-thread", "asgct2", "asgst-iterator", "asgst-frame"}) {
    EXPECT_GT(ran.stats["frames"][walker]["count"], 10) << walker;
  }
  EXPECT_EQ(ran.stats["contained"], 0) << ran.findings;
}

}  // namespace
}  // namespace framestorm::stress
