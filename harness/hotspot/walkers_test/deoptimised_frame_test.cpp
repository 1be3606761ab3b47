// A frame that is to be deoptimised has a word for where it really is, which AsyncGetCallTrace takes as it is.
#include <string>
#include <vector>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/text.h"

namespace framestorm {
namespace {

using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

class DeoptimisedFrameTest : public JvmTest {};

TEST_F(DeoptimisedFrameTest, WhatIsFartherThanCodeMayReachIsNoPlaceInIt) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const VmStructs& structs = session().jvm().structs();
  const CodeEntry* const code = session().jvm().code_map().find(victim(ScenarioId::c1).pc);
  ASSERT_NE(code, nullptr);
  const auto word =
      read_at<int>(blob_of(code->begin), structs.required_offset("nmethod", "_orig_pc_offset")) / 8;
  constexpr uintptr_t kFarthest = 0x7fffffff;  // that debug information may be of
  Input input;
  TextError error;
  ASSERT_TRUE(
      parse_text("framestorm-input 1\nwalker asgct\nscenario c1\nthread last-java-sp = real-sp\n"
                 "thread last-java-pc = raw " +
                     std::to_string(code->deopt_handler) + "\nstack sp + " + std::to_string(word) +
                     " = raw " + std::to_string(code->begin + kFarthest) + "\n",
                 &input, &error))
      << error.message;
  const Walked walked = walk(input);
  EXPECT_EQ(walked.outcome.end, WalkEnd::returned) << explain(walked);
  EXPECT_EQ(walked.outcome.unresolved, 0U);
  EXPECT_EQ(walked.methods, std::vector<std::string>{code->name}) << explain(walked);
}

}  // namespace
}  // namespace framestorm
