// The adapters of the instrumented JDK's walkers, on stand-ins: what they make of frames and
// errors, and what they pass.
#include <algorithm>
#include <thread>

#include "harness/victim/context.h"
#include "harness/walkers/adapters_fixture.h"
#include "harness/walkers/frame_marks.h"

namespace framestorm {
namespace {

using namespace adapters_test;

std::vector<FrameType> types_of(const std::vector<Frame>& frames) {
  std::vector<FrameType> types;
  types.reserve(frames.size());
  for (const Frame& frame : frames) types.push_back(frame.type);
  return types;
}

const std::vector kJavaTypes = {FrameType::native, FrameType::inlined, FrameType::inlined,
                                FrameType::java, FrameType::java};
const std::vector kAllTypes = {FrameType::cpp,     FrameType::native, FrameType::inlined,
                               FrameType::inlined, FrameType::java,   FrameType::java,
                               FrameType::cpp};

TEST_F(AdaptersTest, AsgstFramesAreReadByTheirType) {
  const auto walker = make_walker(WalkerId::asgst, exports_);
  auto frames = walk(*walker);
  ASSERT_EQ(types_of(frames), kJavaTypes);
  EXPECT_EQ(frames[0].method, method(1));
  EXPECT_EQ(frames[0].bci, walker->traits().native_bci);
  EXPECT_EQ(frames[1].bci, 7);
  EXPECT_EQ(frames[1].tier, 4);
  EXPECT_EQ(frames[1].pc, 0U) << "the union has no pc in Java frames";
  EXPECT_EQ(frames[4].bci, 65534) << "not taken for a negative one";
  EXPECT_EQ(frames[4].tier, 0);

  target_.options = kIncludeCFrames;
  frames = walk(*walker);
  ASSERT_EQ(types_of(frames), kAllTypes);
  EXPECT_EQ(frames[0].pc, 0x10U);
  EXPECT_EQ(frames[0].method, nullptr);
  EXPECT_EQ(frames[0].bci, kNoBci);
  EXPECT_EQ(walk(*walker, 3).size(), 3U);
}

TEST_F(AdaptersTest, AFrameOfNoKnownTypeIsInvalid) {
  control_->defect = Defect::unknown_type;
  const auto walker = make_walker(WalkerId::asgst, exports_);
  const auto frames = walk(*walker);
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames[0].type, FrameType::invalid);
}

TEST(Frames, LostMethodsAreToldFromOtherDifferences) {
  struct Plain {
    uint64_t bci;
    uint64_t method;
  };
  FrameLayout layout;
  layout.stride = sizeof(Plain);
  layout.bci = offsetof(Plain, bci);
  layout.method = offsetof(Plain, method);
  using Frames = std::array<Plain, 3>;
  const auto lost = [&layout](const Frames& earlier, const Frames& later) {
    const auto bytes = [](const Frames& frames) {
      return reinterpret_cast<const std::byte*>(frames.data());
    };
    return lost_methods(layout, bytes(earlier), bytes(later), earlier.size());
  };
  const Frames whole = {{{7, 0x10}, {8, 0x20}, {9, 0x30}}};
  const Frames less = {{{7, 0x10}, {8, 0}, {9, 0x30}}};
  EXPECT_TRUE(lost(whole, less));
  EXPECT_FALSE(lost(less, whole)) << "nothing gives them back";
  EXPECT_FALSE(lost(whole, whole));
  EXPECT_FALSE(lost(whole, {{{7, 0x10}, {8, 0x28}, {9, 0x30}}})) << "another method";
  EXPECT_FALSE(lost(whole, {{{7, 0x10}, {8, 0}, {10, 0x30}}})) << "another bci, too";
}

TEST_F(AdaptersTest, AsgstIsToldItsModeByTheModeAlone) {
  const auto walker = make_walker(WalkerId::asgst, exports_);
  target_.options = 0xffffffff;
  target_.accepted_kinds = 0x31;
  target_.accepted_states = 0x80000005;
  walk(*walker);
  EXPECT_EQ(control_->options, 0xffffffffU);
  EXPECT_EQ(control_->accepted_kinds, 0x31U);
  EXPECT_EQ(static_cast<uint32_t>(control_->accepted_states), 0x80000005U);
  target_.same_thread = false;
  walk(*walker);
  EXPECT_EQ(control_->options, 0xfffffff7U);
  EXPECT_FALSE(walker->traits().borrows_identity()) << "it finds the victim by itself";
}

TEST_F(AdaptersTest, AsgstVariantsAreToldTheThread) {
  target_.same_thread = false;
  target_.asked_tid = 4711;
  walk(*make_walker(WalkerId::asgst_env, exports_));
  EXPECT_EQ(control_->asked_env, this);
  EXPECT_EQ(control_->options, 0U);
  walk(*make_walker(WalkerId::asgst_thread, exports_));
  EXPECT_EQ(control_->os_thread_id, 4711);
  EXPECT_EQ(control_->options, 0U);
}

TEST_F(AdaptersTest, AsgstFactsAreThoseOfTheTrace) {
  const auto walker = make_walker(WalkerId::asgst, exports_);
  control_->kind = 2;
  control_->state = -1;
  control_->env = control_;
  walk(*walker);
  const WalkFacts& facts = *walker->facts();
  EXPECT_TRUE(facts.has_kind && facts.has_state && facts.has_env);
  EXPECT_EQ(facts.kind, 2);
  EXPECT_EQ(facts.state, -1);
  EXPECT_EQ(facts.env, control_);
  EXPECT_EQ(facts.contained_faults, 0);

  control_->defect = Defect::refuses;
  walk(*walker);
  EXPECT_EQ(result_, -5);
  EXPECT_FALSE(facts.has_kind || facts.has_state || facts.has_env) << "not valid with errors";

  control_->defect = Defect::contains_a_fault;
  walk(*walker);
  EXPECT_EQ(result_, walker->traits().contained_error);
  EXPECT_EQ(facts.contained_faults, 1);
  control_->defect = Defect::none;
  walk(*walker);
  EXPECT_EQ(facts.contained_faults, 0) << "only this walk's";
}

TEST_F(AdaptersTest, Asgct2FramesAreFlat) {
  const auto walker = make_walker(WalkerId::asgct2, exports_);
  const auto frames = walk(*walker);
  const std::vector expected = {FrameType::cpp,     FrameType::native,   FrameType::inlined,
                                FrameType::inlined, FrameType::compiled, FrameType::interpreted,
                                FrameType::cpp};
  ASSERT_EQ(types_of(frames), expected);
  EXPECT_EQ(frames[0].pc, 0x10U);
  EXPECT_EQ(frames[0].tier, kNoTier);
  EXPECT_EQ(frames[1].bci, walker->traits().native_bci);
  EXPECT_EQ(frames[1].bci, -3);
  EXPECT_EQ(frames[4].method, method(4));
  EXPECT_EQ(frames[4].tier, 4);
  EXPECT_EQ(control_->asked_env, this);
}

TEST_F(AdaptersTest, PackedFramesHaveAMethodOrAPc) {
  const auto walker = make_walker(WalkerId::asgct2_packed, exports_);
  auto frames = walk(*walker);
  ASSERT_EQ(types_of(frames), kAllTypes);
  EXPECT_EQ(frames[0].pc, 0x10U);
  EXPECT_FALSE(frames[0].unnamed);
  EXPECT_TRUE(frames[1].unnamed) << "a native method has no place for its ID";
  EXPECT_EQ(frames[1].method, nullptr);
  EXPECT_EQ(frames[1].pc, 0x20U);
  EXPECT_EQ(frames[1].bci, walker->traits().native_bci);
  EXPECT_EQ(frames[1].tier, kNoTier) << "that byte is no part of its frame";
  EXPECT_EQ(frames[2].method, method(2));
  EXPECT_EQ(frames[2].bci, 7);
  EXPECT_EQ(frames[2].pc, 0U);
  EXPECT_EQ(frames[4].tier, 4);
  EXPECT_EQ(frames[5].bci, 65534) << "not taken for a negative one";
  EXPECT_EQ(frames[5].tier, 0);
  EXPECT_EQ(control_->asked_env, this);
  EXPECT_EQ(walk(*walker, 3).size(), 3U);

  control_->defect = Defect::cpp_as_stub;
  frames = walk(*walker);
  EXPECT_EQ(frames[0].type, FrameType::stub);
  EXPECT_EQ(frames[0].pc, 0x10U);
  control_->stack = [](void*, StandInFrame* out, size_t) {
    *out = {.method = method(1), .type = Type::java};
    return size_t{1};
  };
  EXPECT_EQ(walk(*walker)[0].bci, kNoBci);
}

TEST_F(AdaptersTest, IteratorFramesKeepMethodPcAndSp) {
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  target_.options = kIncludeCFrames;
  const auto frames = walk(*walker);
  ASSERT_EQ(types_of(frames), kAllTypes);
  EXPECT_EQ(control_->options, kIncludeCFrames);
  EXPECT_EQ(frames[2].method, method(2));
  EXPECT_EQ(frames[2].sp, frames[4].sp);
  EXPECT_EQ(frames[6].pc, 0x60U);
  EXPECT_EQ(walk(*walker, 2).size(), 2U);
  EXPECT_EQ(walk(*walker, 0).size(), 0U);
  EXPECT_EQ(result_, 0);
  control_->kind = -3;
  walk(*walker);
  EXPECT_EQ(result_, -3);
  EXPECT_EQ(walker->error_name(-3), "unsafe_state");
}

TEST_F(AdaptersTest, AnIterationWithoutFramesEndsWithItsError) {
  control_->stack = [](void*, StandInFrame*, size_t) { return size_t{0}; };
  control_->end = -18;
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  walk(*walker);
  EXPECT_EQ(result_, -18);
  EXPECT_TRUE(walker->documented_error(-18));
  EXPECT_FALSE(walker->documented_error(-22)) << "the harness gives valid iterators";
  EXPECT_STREQ(walker->facts()->stopped, "bad_pc");
}

TEST_F(AdaptersTest, FrameWalksBeginAtTheContextsRegisters) {
  set_register(&context_, Register::sp, 0x1020);
  const auto walker = make_walker(WalkerId::asgst_frame, exports_);
  const auto frames = walk(*walker);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].method, method(2));
  EXPECT_FALSE(walker->traits().borrows_identity());
}

// A thread of the stand-in that has marks, set at its next polls.
class MarkedThreadTest : public AdaptersTest {
 public:
  ~MarkedThreadTest() override {
    control_->defect = Defect::none;
    control_->leaves_frames = true;
    walk(*walker_);
    // The thread ends, and its queue.
    reinterpret_cast<int (*)(void* (*)(size_t), void (*)(void*), void*)>(
        dlsym(library_, "framestorm_queues_begin"))(nullptr, nullptr, nullptr);
    reinterpret_cast<void (*)()>(dlsym(library_, "framestorm_queues_end"))();
  }

 protected:
  MarkedThreadTest() : walker_(make_walker(WalkerId::asgst_mark, exports_)) {
    // Another thread for each test: what was marked is the process's.
    static uintptr_t threads = 0x100000;
    target_.java_thread = reinterpret_cast<void*>(threads += 0x1000);
    const FrameMarks& marks = FrameMarks::of(exports_);
    while (!marks.is_known(target_.java_thread)) {
      walk(*walker_);
      std::this_thread::yield();
    }
    target_.options = kIncludeCFrames;
    whole_ = walk(*walker_);
    EXPECT_FALSE(put_together());
    EXPECT_TRUE(walker_->keeps_state_in_thread()) << "its poll is armed";
    poll();
    EXPECT_FALSE(walker_->keeps_state_in_thread());
  }

  bool put_together() const { return walker_->facts()->put_together; }
  void poll() {
    reinterpret_cast<void (*)(void*)>(dlsym(library_, "framestorm_queues_poll"))(&context_);
  }
  // A new method runs where the topmost one did.
  static size_t other_top(void*, StandInFrame* out, size_t room) {
    std::copy_n(kStack.begin(), std::min(room, kStack.size()), out);
    out[1] = {method(9), 3, 0, Type::java, 0x25, 0x1008, 0x1010};
    return kStack.size();
  }
  // And the thread's first frame is another one, which is below all that can be marked.
  static size_t others(void*, StandInFrame* out, size_t room) {
    const size_t size = other_top(nullptr, out, room);
    out[size - 1].pc = 0x65;
    return size;
  }

  std::unique_ptr<Walker> walker_;
  std::vector<Frame> whole_;
};

TEST_F(MarkedThreadTest, WhatWasKeptFollowsTheMarkedFrame) {
  EXPECT_EQ(walk(*walker_), whole_);
  EXPECT_TRUE(put_together());
  target_.options = 0;
  EXPECT_EQ(walk(*walker_).size(), whole_.size() - 2) << "kept without frames of C, too";
  EXPECT_TRUE(put_together());
  target_.options = kIncludeCFrames;
  EXPECT_EQ(walk(*walker_, 6), std::vector(whole_.begin(), whole_.begin() + 6));
  control_->stack = &other_top;
  const std::vector<Frame> now = walk(*walker_);
  EXPECT_TRUE(put_together());
  ASSERT_EQ(now.size(), whole_.size());
  EXPECT_EQ(now[1].method, method(9)) << "what runs above the mark is walked";
  EXPECT_TRUE(std::equal(now.begin() + 2, now.end(), whole_.begin() + 2));
  EXPECT_EQ(walker_->facts()->complaint_count, 0U);
}

TEST_F(MarkedThreadTest, NothingIsKeptOfFramesThatWereLeft) {
  control_->stack = &others;
  control_->leaves_frames = true;
  const std::vector<Frame> now = walk(*walker_);
  EXPECT_FALSE(put_together());
  EXPECT_EQ(now.back().pc, 0x65U);
}

TEST_F(MarkedThreadTest, AMarkThatOutlivesItsFrameMakesTracesWrong) {
  control_->stack = &others;
  control_->leaves_frames = true;
  control_->defect = Defect::mark_outlives_its_frame;
  EXPECT_EQ(walk(*walker_).back().pc, 0x60U);
  EXPECT_TRUE(put_together());
}

TEST_F(MarkedThreadTest, AnEndAtNobodysMarkIsComplainedAbout) {
  control_->defect = Defect::mark_of_nobody;
  EXPECT_LT(walk(*walker_).size(), whole_.size());
  ASSERT_EQ(walker_->facts()->complaint_count, 1U);
  EXPECT_EQ(walker_->facts()->complaints[0].clause, "mark-of-nobody");
}

TEST_F(AdaptersTest, ARequestIsAFrameOfItsOwnUnlessItIsBiased) {
  const auto walker = make_walker(WalkerId::jfr_request, exports_);
  auto frames = walk(*walker);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].sp, 0x1018U) << "an interpreted frame's frame pointer";
  EXPECT_EQ(frames[0].pc, 0x20U);
  EXPECT_EQ(frames[0].bcp, 1U) << "its method is native";
  EXPECT_EQ(frames[0].bci, kNoBci);
  EXPECT_EQ(control_->options, 0U);
  target_.options = kJavaSampler | 0x80000000U;
  walk(*walker);
  EXPECT_EQ(control_->options, 1U) << "which sampler, and no other bit";
  EXPECT_TRUE(walk(*walker, 0).empty());
  control_->stack = [](void*, StandInFrame*, size_t) -> size_t { return 0; };
  walk(*walker);
  EXPECT_EQ(walker->error_name(result_), "biased");
  control_->defect = Defect::refuses;
  walk(*walker);
  EXPECT_EQ(walker->error_name(result_), "wrong_thread_state");
}

TEST_F(AdaptersTest, FramesOfJfrHaveItsTypesAndNoTier) {
  const auto walker = make_walker(WalkerId::jfr_trace, exports_);
  auto frames = walk(*walker);
  ASSERT_EQ(types_of(frames),
            (std::vector{FrameType::native, FrameType::inlined, FrameType::inlined,
                         FrameType::compiled, FrameType::interpreted}));
  EXPECT_EQ(frames[0].bci, walker->traits().native_bci);
  EXPECT_EQ(frames[1].method, method(2));
  EXPECT_EQ(frames[1].bci, 7);
  EXPECT_EQ(frames[1].tier, kNoTier);
  EXPECT_EQ(control_->options, 0U);
  target_.options = kStaleSample;
  EXPECT_EQ(walk(*walker, 2).size(), 2U);
  EXPECT_EQ(control_->options, 1U) << "the request is the registers'";
}

TEST_F(AdaptersTest, WhatTheJdkDoesNotExportIsRefusedWithTheWayOut) {
  const Exports nothing("libjvm.so", [](const char*) -> void* { return nullptr; });
  for (const WalkerId id : kAddedWalkers) {
    try {
      make_walker(id, nothing);
      FAIL() << "accepted";
    } catch (const SetupError& error) {
      EXPECT_NE(std::string(error.what()).find("does not export "), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("framestorm jdk build"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace framestorm
