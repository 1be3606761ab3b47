#include "harness/jvm/coverage.h"

#include <gtest/gtest.h>

#include <array>

namespace framestorm {
namespace {

using Counters = std::array<uint8_t, 4>;

TEST(Coverage, IsAbsentWithoutCounters) {
  Coverage coverage;
  EXPECT_FALSE(coverage.available());
  const Coverage::Aside aside(coverage);
}

TEST(Coverage, PutsBackWhatWasAside) {
  Counters counters = {1, 0, 3, 0};
  Coverage coverage{counters};
  EXPECT_TRUE(coverage.available());
  {
    const Coverage::Aside aside(coverage);
    counters = {9, 9, 9, 9};
  }
  EXPECT_EQ(counters, (Counters{1, 0, 3, 0}));
}

TEST(Coverage, NestsScopes) {
  Counters counters = {1, 1, 1, 1};
  Coverage coverage{counters};
  for (int i = 0; i < 2; ++i) {
    const Coverage::Aside outer(coverage);
    counters = {2, 2, 2, 2};
    {
      const Coverage::Aside inner(coverage);
      counters = {3, 3, 3, 3};
    }
    EXPECT_EQ(counters, (Counters{2, 2, 2, 2}));
  }
  EXPECT_EQ(counters, (Counters{1, 1, 1, 1}));
}

TEST(ReachedEdges, CountsEachEdgeOnce) {
  ReachedEdges reached;
  EXPECT_TRUE(reached.take_new().empty());
  reached.note(Counters{1, 0, 0, 255});
  reached.note(Counters{0, 2, 0, 128});
  EXPECT_EQ(reached.take_new(), (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_EQ(reached.count(), 3);
  reached.note(Counters{7, 7, 0, 0});
  EXPECT_TRUE(reached.take_new().empty());
  reached.note(Counters{0, 0, 1, 1});
  EXPECT_EQ(reached.take_new(), (std::vector<uint32_t>{2}));
  EXPECT_EQ(reached.count(), 4);
}

}  // namespace
}  // namespace framestorm
