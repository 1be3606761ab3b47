#include "fuzz/libfuzzer_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "harness/base/test_folder.h"

namespace framestorm {
namespace {

LibFuzzerArguments given(std::vector<std::string> words) {
  words.insert(words.begin(), "./fuzz_stack");
  return LibFuzzerArguments(std::move(words));
}

// The value libFuzzer would take: the last one.
std::string value(const std::vector<std::string>& arguments, const std::string& flag) {
  const auto last = std::find_if(arguments.rbegin(), arguments.rend(),
                                 [&](const auto& one) { return one.starts_with(flag + "="); });
  return last == arguments.rend() ? "" : last->substr(flag.size() + 1);
}

TEST(LibFuzzerArgumentsTest, KeepsWhatIsAskedAndForcesWhatTheJvmNeeds) {
  const auto arguments =
      given({"--", "-rss_limit_mb=2560", "-timeout=25", "-handle_segv=1", "-max_len=100", "corpus"})
          .completed();
  EXPECT_EQ(arguments.front(), "./fuzz_stack");
  EXPECT_EQ(value(arguments, "-rss_limit_mb"), "2560");
  EXPECT_EQ(value(arguments, "-max_len"), "100");
  EXPECT_EQ(value(arguments, "-handle_segv"), "0");
  EXPECT_EQ(value(arguments, "-timeout"), "0");
  EXPECT_EQ(value(arguments, "-detect_leaks"), "0");
  EXPECT_EQ(value(arguments, "-len_control"), "0");
  EXPECT_NE(std::ranges::find(arguments, "corpus"), arguments.end());
}

TEST(LibFuzzerArgumentsTest, ForcesBeforeWhatLibFuzzerIgnores) {
  const auto arguments = given({"-ignore_remaining_args=1", "-handle_segv=1"}).completed();
  const auto rest = std::ranges::find(arguments, "-ignore_remaining_args=1");
  ASSERT_NE(rest, arguments.end());
  EXPECT_NE(std::find(arguments.begin(), rest, "-handle_segv=0"), rest);
}

TEST(LibFuzzerArgumentsTest, KnowsWhoOnlyStartsOthers) {
  EXPECT_TRUE(given({"-merge=1", "a", "b"}).only_starts_others());
  EXPECT_TRUE(given({"-set_cover_merge=1", "a", "b"}).only_starts_others());
  EXPECT_TRUE(given({"-minimize_crash=1", "file"}).only_starts_others());
  EXPECT_TRUE(given({"-fork=2", "a"}).only_starts_others());
  EXPECT_TRUE(given({"-jobs=2"}).only_starts_others());
  EXPECT_FALSE(given({"-runs=10", "-fork=0", "a"}).only_starts_others());
  EXPECT_FALSE(given({"-merge=1", "-merge_inner=1", "-merge_control_file=c"}).only_starts_others());
  EXPECT_FALSE(
      given({"-minimize_crash=1", "-minimize_crash_internal_step=1", "f"}).only_starts_others());
  EXPECT_FALSE(given({"-ignore_remaining_args=1", "-merge=1"}).only_starts_others());
}

TEST(LibFuzzerArgumentsTest, TellsArtifactsFromCorpora) {
  const TestFolder folder;
  const std::string file = (folder / "crash").string();
  std::ofstream(file) << "x";
  EXPECT_TRUE(given({"-runs=3", file}).executes_files());
  EXPECT_FALSE(given({file, (folder / ".").string()}).executes_files());
  EXPECT_FALSE(given({"-runs=3"}).executes_files());
  EXPECT_FALSE(given({"-minimize_crash_internal_step=1", file}).executes_files());
  EXPECT_EQ(given({"-minimize_crash_internal_step=1", file}).minimized_file(), file);
  EXPECT_EQ(given({file}).minimized_file(), "");
}

TEST(LibFuzzerArgumentsTest, ArtifactsGoWhereLibFuzzerPutsThem) {
  EXPECT_EQ(given({}).artifact_path("crash-1"), "crash-1");
  EXPECT_EQ(given({"-artifact_prefix=out/"}).artifact_path("crash-1"), "out/crash-1");
  EXPECT_EQ(given({"-artifact_prefix=out/", "-exact_artifact_path=x"}).artifact_path("crash-1"),
            "x");
}

TEST(LibFuzzerArgumentsTest, NumbersAreTheLastOnesGiven) {
  EXPECT_EQ(given({"-timeout=25", "-timeout=7"}).number("timeout", 5), 7);
  EXPECT_EQ(given({}).number("timeout", 5), 5);
}

}  // namespace
}  // namespace framestorm
