#include "scripts/native/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "harness/input/input.h"
#include "harness/input/scenario_table.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

constexpr const char* kText = "framestorm-input 1\nscenario c1\nregister sp = real-sp - 64\n";

struct Result {
  int status = -1;
  std::string out;
  std::string err;
};

Result decoded(const std::string& bytes, bool force = false) {
  std::istringstream in(bytes);
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_decode({.force = force}, in, out, err);
  return {status, out.str(), err.str()};
}

Result encoded(const std::string& text) {
  std::istringstream in(text);
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_encode(in, out, err);
  return {status, out.str(), err.str()};
}

TEST(Codec, EncodeThenDecodeGivesTheTextBack) {
  const Result binary = encoded(kText);
  ASSERT_EQ(binary.status, kCodecOk) << binary.err;
  const Result text = decoded(binary.out);
  EXPECT_EQ(text.status, kCodecOk) << text.err;
  EXPECT_EQ(text.out, kText);
}

TEST(Codec, DecodesToJsonToo) {
  std::istringstream in(encoded(kText).out);
  std::ostringstream out;
  std::ostringstream err;
  ASSERT_EQ(run_decode({.json = true}, in, out, err), kCodecOk) << err.str();
  const auto record = nlohmann::json::parse(out.str());
  EXPECT_EQ(record.at("text"), kText);
  EXPECT_EQ(record.at("state"), "torn");
  EXPECT_EQ(record.at("input").at("scenario"), "c1");
  EXPECT_EQ(record.at("input").at("mutations").at(0).at("value").at("delta"), -64);
}

TEST(Codec, EncodeNamesTheLine) {
  const Result result = encoded("framestorm-input 1\nscenario c1\nregister eax = raw 0\n");
  EXPECT_EQ(result.status, kCodecUsageError);
  EXPECT_TRUE(result.err.starts_with("line 3: unknown register 'eax'")) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Codec, DecodeRefusesGarbageUnlessForced) {
  const std::string garbage =
      "\x7f"
      "ELF garbage";
  const Result refused = decoded(garbage);
  EXPECT_EQ(refused.status, kCodecUsageError);
  EXPECT_NE(refused.err.find("first byte"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.out, "");
  const Result forced = decoded(garbage, true);
  EXPECT_EQ(forced.status, kCodecOk);
  EXPECT_TRUE(forced.out.starts_with("framestorm-input 1\n")) << forced.out;
}

TEST(Codec, EmptyInputsAreErrors) {
  EXPECT_EQ(decoded("").status, kCodecUsageError);
  EXPECT_EQ(encoded("").status, kCodecUsageError);
}

TEST(Codec, OutputThatCannotBeWrittenIsAnError) {
  std::istringstream in(kText);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  std::ostringstream err;
  EXPECT_EQ(run_encode(in, out, err), kCodecUsageError);
  EXPECT_NE(err.str().find("cannot be written"), std::string::npos);
}

TEST(Codec, NamesAreJson) {
  std::ostringstream out;
  ASSERT_EQ(run_names(out), kCodecOk);
  const auto names = nlohmann::json::parse(out.str());
  EXPECT_EQ(names.at("scenarios").size(), all_scenarios().size());
  EXPECT_EQ(names.at("scenarios").at(2), "c2-inlined");
  EXPECT_EQ(names.at("modes").at(1), "separate-thread");
  EXPECT_EQ(names.at("walkers").at(0), "asgct");
  EXPECT_EQ(names.at("registers").at(3), "rax");
}

nlohmann::json entry_of(const nlohmann::json& table, const std::string& name) {
  const auto found =
      std::ranges::find_if(table, [&](const auto& entry) { return entry.at("name") == name; });
  return found == table.end() ? nlohmann::json() : *found;
}

TEST(Codec, NamesSayWhatAPluginDeclares) {
  WalkerTraits declared = traits_of(WalkerId::plugin);
  declared.separate_thread = false;
  std::ostringstream out;
  ASSERT_EQ(run_names(out, &declared), kCodecOk);
  const auto names = nlohmann::json::parse(out.str());
  EXPECT_EQ(entry_of(names.at("walker_table"), "plugin").at("separate_thread"), false);
  EXPECT_EQ(entry_of(names.at("walker_table"), "asgct").at("separate_thread"), true);
}

// What fake programs of the Python tests answer. Anew: framestorm-native names > that file.
TEST(Codec, NamesAreWhatFakesSay) {
  std::ostringstream out;
  ASSERT_EQ(run_names(out), kCodecOk);
  std::ifstream file(FRAMESTORM_FAKE_NAMES);
  EXPECT_EQ(out.str(), std::string(std::istreambuf_iterator<char>(file), {}))
      << "answered otherwise in " << FRAMESTORM_FAKE_NAMES;
}

TEST(Codec, NamesSayWhatWalkersAndTargetsAre) {
  std::ostringstream out;
  ASSERT_EQ(run_names(out), kCodecOk);
  const auto names = nlohmann::json::parse(out.str());
  const auto& walkers = names.at("walker_table");
  ASSERT_EQ(walkers.size(), names.at("walkers").size());
  EXPECT_EQ(entry_of(walkers, "asgct").at("symbol"), "AsyncGetCallTrace");
  EXPECT_EQ(entry_of(walkers, "asgct").at("origin"), "jdk");
  EXPECT_EQ(entry_of(walkers, "gst").at("needs_running_vm"), true);
  EXPECT_EQ(entry_of(walkers, "plugin").at("origin"), "shared-object");
  EXPECT_EQ(entry_of(walkers, "asgst-env").at("origin"), "added");
  EXPECT_EQ(entry_of(walkers, "asgst-env").at("same_thread"), false);
  const auto& targets = names.at("targets");
  EXPECT_EQ(entry_of(targets, "fuzz_iterator").at("walkers"),
            (nlohmann::json{"asgst-iterator", "asgst-frame"}));
  EXPECT_EQ(entry_of(targets, "fuzz_queue").at("walkers"), (nlohmann::json{"asgst-queue"}));
  const auto frame_walkers = entry_of(targets, "fuzz_frame").at("walkers");
  EXPECT_EQ(frame_walkers.size(), walkers.size() - 1);  // not gst
  const auto stack_walkers = entry_of(targets, "fuzz_stack").at("walkers");
  EXPECT_EQ(stack_walkers.size(), frame_walkers.size() - 1);
  EXPECT_EQ(std::ranges::find(stack_walkers, "jfr-trace"), stack_walkers.end());
}

}  // namespace
}  // namespace framestorm
