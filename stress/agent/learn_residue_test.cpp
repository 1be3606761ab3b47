// In a JVM of this process.
#include "stress/agent/learn_residue.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/guard/guard.h"

namespace framestorm::stress {
namespace {

TEST(LearnResidue, FindsTheMarkOfAWalkThatWasAbandoned) {
  const char* const home = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(home, nullptr) << "set FRAMESTORM_TEST_JDK, or run `scripts/framestorm test`";
  JvmOptions options;
  options.home = home;
  Jvm& jvm = Jvm::start(options);
  Guard::install({&Jvm::claim_fault}, {});
  const WalkResidue residue = learn_residue(jvm);
  EXPECT_EQ(residue.count(), 1U) << "JavaThread::_in_asgct";
}

}  // namespace
}  // namespace framestorm::stress
