// Replay in this process: an oracle that is added in one file is heard, and what was not judged is
// said.
#include "scripts/native/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/test_folder.h"
#include "harness/input/binary.h"
#include "harness/oracles/added_oracle_fixture.h"

namespace framestorm {
namespace {

TEST(Replay, AnAddedOracleIsHeard) {
  const char* const home = std::getenv("FRAMESTORM_TEST_JDK");
  const char* const classes = std::getenv("FRAMESTORM_TEST_CLASSES");
  ASSERT_TRUE(home != nullptr && classes != nullptr) << "run `scripts/framestorm test`";
  jvm_test::switch_added_oracles_on();
  const TestFolder folder;
  Input input;
  input.scenario = ScenarioId::c1;
  std::vector<uint8_t> bytes;
  encode(input, &bytes);
  ReplayOptions options;
  options.session.jvm.home = home;
  options.session.jvm.class_path = {classes};
  options.session.scenarios = {ScenarioId::c1};
  options.out = folder.path();
  options.artifact = folder.path() / "input.bin";
  options.signature = folder.path() / "signature.json";
  std::ofstream(options.artifact, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  std::ofstream(options.signature) << R"({"kind": "contract", "clause": "added", "frames": []})";
  ASSERT_EQ(run_replay(options), 0);
  std::ifstream file(folder.path() / "replay.json");
  const nlohmann::json replay = nlohmann::json::parse(file);
  EXPECT_EQ(replay["found"], true) << replay.dump();
  EXPECT_TRUE(replay["not_judged"].contains("careless")) << replay.dump();
  EXPECT_FALSE(replay["not_judged"].contains("added")) << replay.dump();
}

}  // namespace
}  // namespace framestorm
