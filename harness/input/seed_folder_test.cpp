#include "harness/input/seed_folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/error.h"
#include "harness/base/test_folder.h"
#include "harness/input/binary.h"

namespace framestorm {
namespace {

class SeedFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  static std::string binary(const Input& input) {
    std::vector<uint8_t> bytes;
    encode(input, &bytes);
    return {bytes.begin(), bytes.end()};
  }
  bool load() { return load(folder_.path()); }
  bool load(const std::filesystem::path& folder) {
    try {
      inputs_ = load_seed_folders({folder});
      return true;
    } catch (const SetupError& error) {
      error_ = error.what();
      return false;
    }
  }

  const TestFolder folder_;
  std::vector<Input> inputs_;
  std::string error_;
};

TEST_F(SeedFolder, ReadsTextAndBinaryInOrderOfNames) {
  Input binary_input;
  binary_input.scenario = ScenarioId::gc_thread;
  write("b.bin", binary(binary_input));
  write("c.txt", "framestorm-input 1\nscenario osr\n");
  write("a.txt", "# why\nframestorm-input 1\nscenario c1\n");
  write("README.md", "not a seed");
  ASSERT_TRUE(load()) << error_;
  ASSERT_EQ(inputs_.size(), 3U);
  EXPECT_EQ(inputs_[0].scenario, ScenarioId::c1);
  EXPECT_EQ(inputs_[1].scenario, ScenarioId::gc_thread);
  EXPECT_EQ(inputs_[2].scenario, ScenarioId::osr);
}

TEST_F(SeedFolder, BadTextNamesFileAndLine) {
  write("bad.txt", "framestorm-input 1\nscenario nonesuch\n");
  EXPECT_FALSE(load());
  EXPECT_NE(error_.find("bad.txt:2: unknown scenario 'nonesuch'"), std::string::npos) << error_;
}

TEST_F(SeedFolder, GarbageArtifactNamesTheFile) {
  write("bad.bin",
        "\x7f"
        "ELF");
  EXPECT_FALSE(load());
  EXPECT_NE(error_.find("bad.bin: first byte is not 1"), std::string::npos) << error_;
}

TEST_F(SeedFolder, EmptyAndHugeArtifactsAreErrors) {
  write("a.bin", "");
  EXPECT_FALSE(load());
  EXPECT_NE(error_.find("empty file"), std::string::npos) << error_;
  write("a.bin", std::string(1 << 20, '\1'));
  EXPECT_FALSE(load());
  EXPECT_NE(error_.find("longer than"), std::string::npos) << error_;
}

TEST_F(SeedFolder, NoSeedsIsAnError) {
  EXPECT_FALSE(load());
  EXPECT_NE(error_.find("no seeds"), std::string::npos) << error_;
}

TEST_F(SeedFolder, MissingFolderIsAnError) {
  EXPECT_FALSE(load(folder_ / "nowhere"));
  EXPECT_NE(error_.find("nowhere"), std::string::npos) << error_;
}

TEST_F(SeedFolder, UnreadableEntryIsAnError) {
  std::filesystem::create_directory(folder_ / "folder.txt");
  EXPECT_FALSE(load());
  EXPECT_NE(error_.find("folder.txt: cannot be read"), std::string::npos) << error_;
}

}  // namespace
}  // namespace framestorm
