// Replay in this process: an oracle that is added in one file is heard, what was not judged is said,
// and what a walker in a shared object does is told by where in it that happens.
#include "scripts/native/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/test_folder.h"
#include "harness/input/binary.h"
#include "harness/input/seed_folder.h"
#include "harness/oracles/added_oracle_fixture.h"

namespace framestorm {
namespace {

Register named(std::string_view name) {
  Register found = Register::count;
  EXPECT_TRUE(parse_name(name, &found));
  return found;
}

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    const char* const home = std::getenv("FRAMESTORM_TEST_JDK");
    const char* const classes = std::getenv("FRAMESTORM_TEST_CLASSES");
    ASSERT_TRUE(home != nullptr && classes != nullptr) << "run `scripts/framestorm test`";
    options_.session.jvm.home = home;
    options_.session.jvm.class_path = {classes};
    options_.session.scenarios = {ScenarioId::c1};
    options_.out = folder_.path();
    options_.artifact = folder_.path() / "input.bin";
    options_.signature = folder_.path() / "signature.json";
  }
  void write(const Input& input, const std::string& signature) {
    std::vector<uint8_t> bytes;
    encode(input, &bytes);
    std::ofstream(options_.artifact, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    std::ofstream(options_.signature) << signature;
  }
  nlohmann::json result() const {
    std::ifstream file(folder_.path() / "replay.json");
    return nlohmann::json::parse(file);
  }

  const TestFolder folder_;
  ReplayOptions options_;
};

TEST_F(Replay, AnAddedOracleIsHeard) {
  jvm_test::switch_added_oracles_on();
  Input input;
  input.scenario = ScenarioId::c1;
  write(input, R"({"kind": "contract", "clause": "added", "frames": []})");
  ASSERT_EQ(run_replay(options_), 0);
  const nlohmann::json replay = result();
  EXPECT_EQ(replay["found"], true) << replay.dump();
  EXPECT_TRUE(replay["not_judged"].contains("careless")) << replay.dump();
  EXPECT_FALSE(replay["not_judged"].contains("added")) << replay.dump();
}

TEST_F(Replay, WhatAProfilerHasStoredIsJudged) {
  options_.session.profiler = FRAMESTORM_STAND_IN_PROFILER "=drop";
  options_.session.scenarios = {ScenarioId::c1};
  Input input;
  input.scenario = ScenarioId::c1;
  input.walker = WalkerId::profiler;
  write(input, R"({"kind": "contract", "clause": "wrong-frames", "frames": []})");
  ASSERT_EQ(run_replay(options_), 0);
  EXPECT_EQ(result()["found"], true) << result().dump();
}

TEST_F(Replay, AFaultInASharedObjectIsMinimised) {
  options_.session.walker_plugin = FRAMESTORM_DECLARED "=blind+said";
  Input input;
  input.scenario = ScenarioId::c1;
  input.walker = WalkerId::plugin;
  input.mutations.resize(2);
  input.mutations[0].reg = named("r15");
  input.mutations[0].value.kind = ValueKind::raw;
  input.mutations[0].value.raw = uint64_t{7} << 60;
  input.mutations[1].reg = named("r14");
  input.mutations[1].value.kind = ValueKind::raw;
  input.mutations[1].value.raw = 5;
  write(input, R"({"kind": "fault", "clause": "",
                   "frames": [["declared_walker.so", [0, 1048576]]]})");
  ASSERT_EQ(run_minimize(options_), 0);
  const nlohmann::json replay = result();
  EXPECT_EQ(replay["found"], true) << replay.dump();
  EXPECT_EQ(replay["walker_plugin"], options_.session.walker_plugin);
  const Input smallest = load_input_file(folder_.path() / "minimized.bin");
  ASSERT_EQ(smallest.mutations.size(), 1U);
  EXPECT_EQ(smallest.mutations[0].reg, named("r15"));
}

}  // namespace
}  // namespace framestorm
