#include "scripts/native/walking_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/base/test_folder.h"
#include "harness/input/input.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"
#include "stress/agent/options.h"
#include "stress/agent/walking_file.h"

namespace framestorm {
namespace {

TEST(WalkingView, ShowsTheWalksBeingMadeOldestFirst) {
  const TestFolder folder;
  const auto path = folder.path() / "walking.bin";
  {
    stress::WalkingFile file(path, 4);
    file.record(1)->number = 78;
    // What a process wrote that was dying.
    file.record(1)->thread_state = 77;
    file.record(1)->mode = 77;
    stress::WalkingRecord& walk = *file.record(3);
    walk.number = 77;
    walk.tid = 4242;
    walk.walker = static_cast<uint32_t>(WalkerId::asgst_env);
    walk.mode = static_cast<uint32_t>(stress::SamplingMode::unstopped);
    walk.depth = 128;
    walk.rewalks = 2;
    walk.thread_state = kThreadInJava;
    walk.stack_base = 0x9000;
    walk.last_java_pc = 0x77;
    ucontext_t context = {};
    set_register(&context, Register::pc, 0x1234);
    set_register(&context, Register::sp, 0x50);
    set_register(&context, Register::fp, 0xf0);
    std::ranges::copy(context.uc_mcontext.gregs, walk.registers);
  }
  std::ostringstream out;
  std::ostringstream errors;
  ASSERT_EQ(show_walking(path, out, errors), 0) << errors.str();
  const auto walks = nlohmann::json::parse(out.str());
  ASSERT_EQ(walks.size(), 2U);
  const auto& walk = walks[0];
  EXPECT_EQ(walk["number"], 77);
  EXPECT_EQ(walk["tid"], 4242);
  EXPECT_EQ(walk["walker"], "asgst-env");
  EXPECT_EQ(walk["mode"], "unstopped");
  EXPECT_EQ(walk["depth"], 128);
  EXPECT_EQ(walk["rewalks"], 2);
  EXPECT_EQ(walk["thread_state"], "_thread_in_Java");
  EXPECT_EQ(walk["stack_base"], "0x9000");
  EXPECT_EQ(walk["last_java_pc"], "0x77");
  EXPECT_EQ(walk["real_pc"], "0x1234");
  EXPECT_EQ(walk["real_sp"], "0x50");
  EXPECT_EQ(walk["real_fp"], "0xf0");
  EXPECT_EQ(walks[1]["thread_state"], "invalid");
  EXPECT_EQ(walks[1]["mode"], "invalid");
}

TEST(WalkingView, NamesAFileThatCannotBeRead) {
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(show_walking("/no/such/walking.bin", out, errors), 2);
  EXPECT_NE(errors.str().find("/no/such/walking.bin"), std::string::npos) << errors.str();
}

}  // namespace
}  // namespace framestorm
