// Where a virtual thread's frames end and its carrier's begin.
#include <algorithm>
#include <utility>

#include "harness/hotspot/walkers_test/iterator_fixture.h"

namespace framestorm {
namespace {

using iterator_test::IteratorTest;
using iterator_test::same;

class ContinuationTest : public IteratorTest {
 protected:
  struct Walked {
    std::vector<ASGST_Frame> frames;
    int end = 1;
    ASGST_ContinuationCounts counted = {};  // by this walk
  };
  Walked walk(int options = 0) {
    const auto get = reinterpret_cast<decltype(&ASGST_GetContinuationCounts)>(
        session().jvm().symbol("ASGST_GetContinuationCounts"));
    EXPECT_NE(get, nullptr);
    ASGST_ContinuationCounts before, after;
    get(&before);
    Walked walked;
    run(
        [&](ASGST_Iterator* iterator) {
          walked.frames = rest(iterator);
          walked.end = state_(iterator);
        },
        options);
    get(&after);
    walked.counted = {after.barriers - before.barriers, after.entries - before.entries,
                      after.entries_missing - before.entries_missing,
                      after.speculative - before.speculative};
    return walked;
  }
  static size_t entry_of(const std::vector<ASGST_Frame>& frames) {
    return static_cast<size_t>(std::ranges::find_if(frames, &ContinuationTest::enters) -
                               frames.begin());
  }
  static bool enters(const ASGST_Frame& frame) {
    return frame.type == ASGST_FRAME_CONTINUATION || frame.type == ASGST_FRAME_CONTINUATION_FROZEN;
  }
  // The boundary is one frame with the method's name; asked to, the walk ends with it.
  void expect_boundary(const Walked& walked, uint8_t type, int end) {
    const size_t entry = entry_of(walked.frames);
    ASSERT_LT(entry, walked.frames.size()) << "no frame says that the continuation begins";
    EXPECT_EQ(std::ranges::count_if(walked.frames, &ContinuationTest::enters), 1);
    EXPECT_EQ(walked.frames[entry].type, type);
    EXPECT_EQ(method_of(walked.frames[entry]), "jdk/internal/vm/Continuation.enterSpecial");
    EXPECT_EQ(method_of(walked.frames.back()), "java/util/concurrent/ForkJoinWorkerThread.run");
    EXPECT_EQ(walked.end, end);
    const Walked own = walk(ASGST_END_AT_CONTINUATION);
    EXPECT_EQ(own.end, end);
    ASSERT_EQ(own.frames.size(), entry + 1);
    EXPECT_TRUE(same(own.frames, {walked.frames.begin(),
                                  walked.frames.begin() + static_cast<ptrdiff_t>(entry) + 1}));
    // Started in the carrier, it knows of no continuation.
    int carriers_end = 1;
    run_from(walked.frames[entry + 1], [&](ASGST_Iterator* iterator) {
      EXPECT_EQ(rest(iterator).size(), walked.frames.size() - entry - 1);
      carriers_end = state_(iterator);
    });
    EXPECT_EQ(carriers_end, ASGST_NO_FRAME);
  }
};

TEST_F(ContinuationTest, AllFramesOfAThreadThatNeverYieldedAreThere) {
  begin(ScenarioId::virtual_fresh);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk();
  expect_boundary(walked, ASGST_FRAME_CONTINUATION, ASGST_NO_FRAME);
  EXPECT_EQ(walked.counted.barriers, 0);
  EXPECT_EQ(walked.counted.entries, 1);
  EXPECT_EQ(walked.counted.entries_missing, 0);
  EXPECT_EQ(walked.counted.speculative, 0);
}

TEST_F(ContinuationTest, FrozenFramesAreSaidToBeMissing) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk();
  expect_boundary(walked, ASGST_FRAME_CONTINUATION_FROZEN, ASGST_FRAMES_FROZEN);
  EXPECT_EQ(walked.counted.barriers, 1);
  EXPECT_EQ(walked.counted.entries, 1);
  EXPECT_EQ(walked.counted.entries_missing, 0);
}

TEST_F(ContinuationTest, ABarrierOfNoContinuationEndsTheWalkAndIsCounted) {
  begin(ScenarioId::virtual_remounted);
  ASSERT_FALSE(HasFatalFailure());
  auto* const entered = reinterpret_cast<void**>(
      static_cast<char*>(victim(scenario_).java_thread) +
      session().jvm().structs().required_offset("JavaThread", "_cont_entry"));
  void* const saved = std::exchange(*entered, nullptr);
  const Walked walked = walk();
  *entered = saved;
  EXPECT_EQ(walked.end, ASGST_STOPPED_BAD_PC);
  EXPECT_EQ(entry_of(walked.frames), walked.frames.size());
  EXPECT_EQ(walked.counted.entries_missing, 1);
  EXPECT_EQ(walked.counted.entries, 0);
}

}  // namespace
}  // namespace framestorm
