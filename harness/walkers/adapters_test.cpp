// The adapters of the instrumented JDK's walkers, on stand-ins: what they make of frames and
// errors, what they pass, and what sequences of iterator calls find out.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <span>
#include <thread>

#include "harness/input/canonical.h"
#include "harness/input/text.h"
#include "harness/input/walker_table.h"
#include "harness/victim/context.h"
#include "harness/walkers/frame_marks.h"
#include "harness/walkers/iterator_model.h"
#include "harness/walkers/stand_in/stand_in.h"
#include "harness/walkers/walker.h"

namespace framestorm {
namespace {

using stand_in::Control;
using stand_in::Defect;
using Kind = IteratorCallKind;
using StandInFrame = stand_in::Frame;
using stand_in::Type;

jmethodID method(uintptr_t number) { return reinterpret_cast<jmethodID>(number * 16); }

// C code, a native method, Java with two calls inlined, and the call stub at the bottom.
const std::array kStack = {
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x10, 0x1000, 0x1008},
    StandInFrame{method(1), -1, 0, Type::native, 0x20, 0x1010, 0x1018},
    StandInFrame{method(2), 7, 4, Type::inlined, 0x30, 0x1020, 0x1028},
    StandInFrame{method(3), 8, 4, Type::inlined, 0x30, 0x1020, 0x1028},
    StandInFrame{method(4), 9, 4, Type::java, 0x30, 0x1020, 0x1028},
    StandInFrame{method(5), 65534, 0, Type::java, 0x50, 0x1050, 0x1058},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x60, 0x1060, 0x1068},
};
constexpr size_t kCapacity = 16;

class AdaptersTest : public testing::Test {
 protected:
  AdaptersTest()
      : library_(dlopen(FRAMESTORM_STAND_IN, RTLD_NOW | RTLD_LOCAL)),
        exports_("stand-in", [this](const char* name) { return dlsym(library_, name); }),
        control_(reinterpret_cast<Control* (*)()>(dlsym(library_, "framestorm_stand_in"))()) {
    *control_ = {};
    control_->stack = [](void*, StandInFrame* out, size_t room) {
      std::copy_n(kStack.begin(), std::min(room, kStack.size()), out);
      return kStack.size();
    };
    target_.jni_env = this;
    target_.same_thread = true;
  }

  std::vector<Frame> walk(Walker& walker, int32_t depth = kCapacity) {
    alignas(16) std::array<std::byte, kCapacity * 64> memory;
    result_ = walker.walk(target_, memory.data(), depth, &context_);
    std::vector<Frame> frames;
    frames.reserve(static_cast<size_t>(std::max(result_, 0)));
    for (int32_t i = 0; i < result_; ++i) {
      frames.push_back(read_frame(walker.layout(), memory.data(), static_cast<size_t>(i)));
    }
    return frames;
  }

  void* library_;
  Exports exports_;
  Control* control_;
  WalkTarget target_;
  ucontext_t context_ = {};
  int32_t result_ = 0;
};

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
  ~MarkedThreadTest() override {
    control_->defect = Defect::none;
    control_->leaves_frames = true;
    walk(*walker_);
    // The thread ends, and its queue.
    reinterpret_cast<int (*)(void* (*)(size_t), void (*)(void*), void*)>(
        dlsym(library_, "framestorm_queues_begin"))(nullptr, nullptr, nullptr);
    reinterpret_cast<void (*)()>(dlsym(library_, "framestorm_queues_end"))();
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
  EXPECT_EQ(frames[0].sp, 0x1010U);
  EXPECT_EQ(frames[0].pc, 0x20U);
  EXPECT_EQ(frames[0].bcp, 0U);
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

// --- sequences of iterator calls -----------------------------------------------------------------

class SequenceTest : public AdaptersTest {
 protected:
  // Clauses of what was wrong; with the sentences in `details_`.
  std::set<std::string> clauses(Walker& walker, const std::vector<IteratorCall>& calls) {
    target_.iterator_calls = calls;
    return clauses_of_walk(walker);
  }
  std::set<std::string> clauses(Walker& walker, const std::vector<QueueCall>& calls) {
    target_.queue_calls = calls;
    return clauses_of_walk(walker);
  }
  // Of the kinds from `first` on, before `end`; with arguments below `few`, half of them.
  template <typename Call = IteratorCall, typename AnyKind = decltype(Call::kind)>
  static std::vector<Call> any_calls(std::mt19937& rng, AnyKind first = {},
                                     AnyKind end = AnyKind::count, unsigned few = 3) {
    const auto least = static_cast<unsigned>(first);
    std::vector<Call> calls(1 + rng() % kMaxIteratorCalls);
    for (Call& call : calls) {
      call.kind = static_cast<AnyKind>(least + rng() % (static_cast<unsigned>(end) - least));
      call.argument =
          static_cast<uint8_t>(rng() % (rng() % 2 == 0 ? few : kMaxIteratorArgument + 1));
    }
    return calls;
  }
  static std::string said(const std::vector<IteratorCall>& calls) {
    Input input;
    input.iterator_calls = calls;
    return to_text(input);
  }
  static std::string said(const std::vector<QueueCall>& calls) {
    Input input;
    input.queue_calls = calls;
    return to_text(input);
  }
  std::string details_;

 private:
  std::set<std::string> clauses_of_walk(Walker& walker) {
    walk(walker);
    const WalkFacts& facts = *walker.facts();
    std::set<std::string> found;
    details_.clear();
    for (size_t i = 0; i < std::min(facts.complaint_count, facts.complaints.size()); ++i) {
      found.emplace(facts.complaints[i].clause);
      details_ += std::string(facts.complaints[i].detail.data()) + "; ";
    }
    target_.drop_calls();
    return found;
  }
};

TEST_F(SequenceTest, ARightApiIsNeverComplainedAbout) {
  std::mt19937 rng(1);
  const auto iterator = make_walker(WalkerId::asgst_iterator, exports_);
  const auto frame = make_walker(WalkerId::asgst_frame, exports_);
  set_register(&context_, Register::sp, 0x1010);
  for (int i = 0; i < 20'000; ++i) {
    target_.options = static_cast<uint32_t>(rng()) & kIncludeCFrames;
    control_->end = i % 3 == 0 ? -17 : 0;
    control_->kind = i % 100 == 0 ? -2 : 1;
    const auto calls = any_calls(rng);
    ASSERT_EQ(clauses(i % 4 == 0 ? *frame : *iterator, calls), std::set<std::string>{})
        << "sequence " << i << ": " << details_ << said(calls);
    EXPECT_EQ(result_ > 0, control_->kind > 0) << "the calls leave the walk's own frames alone";
  }
}

TEST_F(SequenceTest, StacksBeyondTheModelAreNotComplainedAbout) {
  control_->stack = [](void*, StandInFrame* out, size_t room) {
    for (size_t i = 0; i < room; ++i) {
      out[i] = {method(i + 1), 1, 0, Type::java, i, 0x1000 + 16 * i, 0};
    }
    return room;
  };
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  EXPECT_EQ(
      clauses(*walker, {{Kind::drain}, {Kind::state}, {Kind::next}, {Kind::rewind}, {Kind::drain}}),
      std::set<std::string>{})
      << details_;
}

struct WrongApi {
  const char* name;
  Defect defect;
  std::vector<IteratorCall> calls;
  std::string clause;
};

class WrongApis : public SequenceTest, public testing::WithParamInterface<WrongApi> {};

INSTANTIATE_TEST_SUITE_P(
    Defects, WrongApis,
    testing::Values(
        WrongApi{"ClosedAccepted",
                 Defect::accepts_closed_iterators,
                 {{Kind::open}, {Kind::leave}, {Kind::select, 1}, {Kind::next}},
                 "iterator-invalid-accepted"},
        WrongApi{"ClosedAcceptedByState",
                 Defect::accepts_closed_iterators,
                 {{Kind::open}, {Kind::leave}, {Kind::select, 1}, {Kind::state}},
                 "iterator-state"},
        WrongApi{
            "LeftAccepted",
            Defect::accepts_left_iterators,
            {{Kind::open}, {Kind::jump}, {Kind::select, 1}, {Kind::thread_state}, {Kind::next}},
            "iterator-invalid-accepted"},
        WrongApi{"NullAccepted",
                 Defect::accepts_null_iterators,
                 {{Kind::select, 1}, {Kind::next}},
                 "iterator-invalid-accepted"},
        WrongApi{"NullFrameAccepted",
                 Defect::accepts_null_frames,
                 {{Kind::next_null}},
                 "iterator-null-frame"},
        WrongApi{"NullHandlerAccepted",
                 Defect::accepts_null_handlers,
                 {{Kind::open_null}},
                 "iterator-null-handler"},
        WrongApi{"RewindsElsewhere",
                 Defect::rewinds_to_the_second,
                 {{Kind::drain}, {Kind::rewind}, {Kind::next}},
                 "iterator-frame"},
        WrongApi{"StateTakesAFrame",
                 Defect::state_takes_a_frame,
                 {{Kind::state}, {Kind::next}},
                 "iterator-frame"},
        WrongApi{"NestedShareTheirPosition",
                 Defect::nested_share_their_position,
                 {{Kind::rewind}, {Kind::next}, {Kind::open}, {Kind::next}},
                 "iterator-frame"},
        WrongApi{"HandlerCalledTwice",
                 Defect::calls_handlers_twice,
                 {{Kind::open}, {Kind::leave}},
                 "iterator-handler-calls"},
        WrongApi{
            "HandlerNotCalled", Defect::calls_no_handler, {{Kind::open}}, "iterator-handler-calls"},
        WrongApi{"EndsOtherwiseLater",
                 Defect::ends_otherwise_later,
                 {{Kind::drain}, {Kind::state}},
                 "iterator-state"},
        WrongApi{"FromFrameSkipsIt",
                 Defect::from_frame_skips_it,
                 {{Kind::next, 1}, {Kind::open_frame}, {Kind::next}},
                 "iterator-frame"},
        WrongApi{"ThreadStateChanges",
                 Defect::thread_state_changes,
                 {{Kind::thread_state}},
                 "iterator-thread-state"},
        WrongApi{"FramesChange", Defect::frames_change, {{Kind::drain}}, "iterator-frame"},
        WrongApi{"NestedGiveAnotherKind",
                 Defect::nested_give_another_kind,
                 {{Kind::open}, {Kind::leave}},
                 "iterator-open"}),
    [](const auto& wrong) { return wrong.param.name; });

TEST_P(WrongApis, AreFoundOut) {
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  target_.options = kIncludeCFrames;
  ASSERT_EQ(clauses(*walker, GetParam().calls), std::set<std::string>{})
      << "right without the defect: " << details_;
  control_->defect = GetParam().defect;
  const auto found = clauses(*walker, GetParam().calls);
  EXPECT_TRUE(found.contains(GetParam().clause)) << details_;
}

// Mutated at random, as the target does, each is found soon as well.
TEST_P(WrongApis, AreFoundByRandomSequences) {
  std::mt19937 rng(2);
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  control_->defect = GetParam().defect;
  int tries = 0;
  while (tries < 2000 && clauses(*walker, any_calls(rng)).empty()) ++tries;
  EXPECT_LT(tries, 2000);
}

TEST_F(SequenceTest, ComplaintsSayWhichCall) {
  control_->defect = Defect::accepts_null_frames;
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  clauses(*walker, {{Kind::next}, {Kind::next_null}});
  EXPECT_EQ(details_, "call 2 (next-null): returned 1, not -24; ");
}

// --- sequences of calls to queues ------------------------------------------------------------------

TEST_F(SequenceTest, RightQueuesAreNeverComplainedAbout) {
  std::mt19937 rng(4);
  const auto walker = make_walker(WalkerId::asgst_queue, exports_);
  for (int i = 0; i < 20'000; ++i) {
    target_.options = static_cast<uint32_t>(rng()) & kIncludeCFrames;
    control_->end = i % 3 == 0 ? -17 : 0;
    control_->kind = i % 50 == 0 ? -1 : i % 50 == 1 ? -2 : 1;
    const auto calls = any_calls<QueueCall>(rng);
    ASSERT_EQ(clauses(*walker, calls), std::set<std::string>{})
        << "sequence " << i << ": " << details_ << said(calls);
    EXPECT_EQ(result_ > 0, control_->kind > 0) << "the calls leave the walk's own frames alone";
  }
}

struct WrongQueue {
  const char* name;
  Defect defect;
  std::vector<QueueCall> calls;
  std::string clause;
};

// As in text: a number, not the argument that it is kept as.
QueueCall queue_call(QueueCallKind kind, int number = 0) {
  return {kind, static_cast<uint8_t>(number - first_argument(kind))};
}

std::vector<WrongQueue> wrong_queues() {
  using Queue = QueueCallKind;
  const auto of = [](int size) { return queue_call(Queue::register_queue, size); };
  const QueueCall enqueue = {Queue::enqueue};
  const QueueCall poll = {Queue::poll};
  const QueueCall leave = {Queue::leave};
  // Of the stack's five frames of Java the first is the topmost, and the next three are one.
  const QueueCall mark = {Queue::register_mark};
  const auto to = [](int frame) { return queue_call(Queue::move_mark, frame); };
  const QueueCall returns = queue_call(Queue::return_frame, 2);
  return {
      {"LastToldFirst",
       Defect::queue_tells_the_last_first,
       {of(3), enqueue, enqueue, poll, leave, leave},
       "queue-argument"},
      {"OnePassedOver",
       Defect::queue_passes_one_over,
       {of(3), enqueue, enqueue, enqueue, poll, leave, leave, leave},
       "queue-argument"},
      {"OneLostByResizing",
       Defect::queue_loses_one_by_resizing,
       {of(3), enqueue, poll, enqueue, queue_call(Queue::resize, 5), leave},
       "queue-size"},
      {"ShrunkOverItsElements",
       Defect::queue_shrinks_over_elements,
       {of(3), enqueue, poll, enqueue, enqueue, queue_call(Queue::resize, 1), leave},
       "queue-size"},
      {"OneTooMany", Defect::queue_takes_one_too_many, {of(1), enqueue, enqueue}, "queue-enqueue"},
      {"AttemptsKept",
       Defect::queue_keeps_attempts,
       {of(2), enqueue, poll, leave},
       "queue-attempts"},
      {"CountedBackFromTheSecond",
       Defect::queue_counts_back_from_the_second,
       {of(3), enqueue, enqueue, queue_call(Queue::element, -1)},
       "queue-element"},
      {"ToldInTheSameRound",
       Defect::queue_tells_what_handlers_enqueue,
       {of(3), enqueue, poll, enqueue, leave},
       "queue-order"},
      {"StartedTwice",
       Defect::queue_calls_start_twice,
       {of(3), queue_call(Queue::on_start, 1), enqueue, poll, leave},
       "queue-order"},
      {"EndedAfterItsEnd",
       Defect::queue_ends_after_its_end,
       {of(3), queue_call(Queue::on_end, 2), enqueue, poll, {Queue::deregister}, leave},
       "queue-order"},
      {"PollsInHandlers",
       Defect::queue_polls_in_handlers,
       {of(3), enqueue, poll, poll},
       "queue-handler-uncalled-for"},
      {"DroppedAtTheEnd",
       Defect::queue_drops_at_the_end,
       {of(3), enqueue, {Queue::exit}},
       "queue-not-told"},
      {"MemoryKept", Defect::queue_keeps_memory, {of(3)}, "queue-memory-kept"},
      {"GivenAgain",
       Defect::queue_given_again,
       {of(3), {Queue::deregister}, of(3)},
       "queue-given-again"},
      {"ElementOfAnError",
       Defect::queue_element_of_an_error,
       {{Queue::enqueuable}},
       "queue-enqueuable"},
      {"GoesOnAfterTheEnd",
       Defect::queue_goes_on_after_the_end,
       {of(3), enqueue},
       "queue-ended-accepted"},
      {"MarkNotTold", Defect::mark_not_told, {mark, to(2), returns}, "mark-not-told"},
      {"OldestMarkToldFirst",
       Defect::mark_tells_the_oldest_first,
       {mark, to(5), mark, to(2), {Queue::exit}},
       "mark-order"},
      {"MarkToldTwice", Defect::mark_tells_twice, {mark, to(2), returns}, "mark-order"},
      {"TopmostFrameMarked", Defect::mark_of_the_topmost_frame, {mark, to(1)}, "mark-pointer"},
      {"LeftFrameMarked",
       Defect::mark_of_what_is_left,
       {mark, to(2), returns, to(2)},
       "mark-pointer"},
      {"MarkKeptWhenTold",
       Defect::mark_kept_when_told,
       {mark, to(2), returns, leave},
       "mark-pointer"},
      {"MarkGoesOnAfterItsEnd",
       Defect::mark_goes_on_after_its_end,
       {mark, to(2), {Queue::remove_mark}},
       "mark-pointer"},
      {"MarkTellsFromItsFrameOn",
       Defect::mark_tells_from_its_frame_on,
       {mark, to(2), returns},
       "mark-told-frame"},
      {"WalksGoOnBeyondTheMark",
       Defect::mark_walks_go_on,
       {mark, to(2), {Queue::walk_to_mark}},
       "mark-walk"},
      {"WalksEndAtTheOldestMark",
       Defect::mark_walks_end_at_the_oldest,
       {mark, to(5), mark, to(2), {Queue::walk_to_mark}},
       "mark-walk"},
      {"PollsAtTheOldestMark",
       Defect::mark_polls_at_the_oldest,
       {mark, to(5), mark, to(2), poll},
       "mark-poll-word"},
  };
}

class WrongQueues : public SequenceTest, public testing::WithParamInterface<WrongQueue> {
 protected:
  WrongQueues() {
    // Errors are what this one is about.
    if (GetParam().defect == Defect::queue_element_of_an_error) control_->kind = -2;
  }
  const std::unique_ptr<Walker> walker_ = make_walker(WalkerId::asgst_queue, exports_);
};

INSTANTIATE_TEST_SUITE_P(Defects, WrongQueues, testing::ValuesIn(wrong_queues()),
                         [](const auto& wrong) { return wrong.param.name; });

TEST_P(WrongQueues, AreFoundOut) {
  ASSERT_EQ(clauses(*walker_, GetParam().calls), std::set<std::string>{})
      << "right without the defect: " << details_;
  control_->defect = GetParam().defect;
  const auto found = clauses(*walker_, GetParam().calls);
  EXPECT_TRUE(found.contains(GetParam().clause)) << details_;
}

TEST_P(WrongQueues, AreFoundByRandomSequences) {
  std::mt19937 rng(5);
  control_->defect = GetParam().defect;
  int tries = 0;
  // Of queues alone; and of polls, ends and marks, of which the second one that can be marked is the
  // stack's fifth frame.
  const auto finds = [&](const std::vector<QueueCall>& calls) {
    return !clauses(*walker_, calls).empty();
  };
  while (tries < 20'000 && !finds(any_calls<QueueCall>(rng, {}, QueueCallKind::register_mark)) &&
         !finds(any_calls<QueueCall>(rng, QueueCallKind::poll, QueueCallKind::count, 6))) {
    ++tries;
  }
  EXPECT_LT(tries, 20'000);
}

// Where a walk begins that is opened from the `index`th of these frames.
size_t begins_at(std::span<const ASGST_Frame> frames, size_t index) {
  IteratorModel model;
  model.reset();
  for (const ASGST_Frame& frame : frames) model.record(frame);
  const int handle = 0;
  model.open(&handle, 0, /*from_frame=*/false, /*opener=*/0);
  for (size_t i = 0; i <= index; ++i) model.advance(&handle);
  return model.physical_begin_of_last();
}

TEST(IteratorModelTest, AFrameThatAStubHasPolledInDoesNotSayWhereItIs) {
  const auto frame = [](ASGST_FrameTypeId type, int level, uintptr_t sp) {
    ASGST_Frame made = {};
    made.type = type;
    made.comp_level = level;
    made.sp = reinterpret_cast<void*>(sp);
    return made;
  };
  const ASGST_Frame stub = frame(ASGST_FRAME_NON_JAVA, -1, 0x1000);
  const std::array frames = {stub, frame(ASGST_FRAME_JAVA_INLINED, 4, 0x1010),
                             frame(ASGST_FRAME_JAVA, 4, 0x1010),
                             frame(ASGST_FRAME_JAVA, 4, 0x1020)};
  EXPECT_EQ(begins_at(frames, 0), IteratorModel::kNone) << "C code";
  EXPECT_EQ(begins_at(frames, 2), IteratorModel::kNone);
  EXPECT_EQ(begins_at(frames, 3), 3);
  const std::array interpreted = {stub, frame(ASGST_FRAME_JAVA, 0, 0x1010)};
  EXPECT_EQ(begins_at(interpreted, 1), 1);
  const std::array native = {frame(ASGST_FRAME_JAVA_NATIVE, 0, 0x1000),
                             frame(ASGST_FRAME_JAVA_INLINED, 4, 0x1010),
                             frame(ASGST_FRAME_JAVA, 4, 0x1010)};
  EXPECT_EQ(begins_at(native, 2), 1);
}

}  // namespace
}  // namespace framestorm
