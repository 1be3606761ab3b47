// Sequences of calls to iterators and queues, on stand-ins: what is wrong is found out, and nothing else.
#include <random>
#include <set>
#include <span>

#include "harness/input/canonical.h"
#include "harness/input/text.h"
#include "harness/victim/context.h"
#include "harness/walkers/adapters_fixture.h"
#include "harness/walkers/iterator_model.h"

namespace framestorm {
namespace {

using namespace adapters_test;
using Kind = IteratorCallKind;

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

// C code, the last native method, Java that C code has called by way of the call stub, and that C code.
const std::array kStackOfC = {
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x10, 0x1000, 0x1008},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x11, 0x1010, 0x1018},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x12, 0x1020, 0x1028},
    StandInFrame{method(1), -1, 0, Type::native, 0x80, 0x1030, 0x1038},
    StandInFrame{method(2), 7, 4, Type::java, 0x81, 0x1040, 0x1048},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x82, 0x1050, 0x1058},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x13, 0x1060, 0x1068},
    StandInFrame{nullptr, -1, -1, Type::cpp, 0x14, 0x1070, 0x1078},
};

class SequenceInCTest : public SequenceTest {
 protected:
  SequenceInCTest() {
    exports_.code_cache = {0x80, 0x90};
    target_.options = kIncludeCFrames;
    control = control_;
    without = kStackOfC.size();
    control_->stack = [](void* context, StandInFrame* out, size_t) {
      size_t size = 0;
      for (size_t i = 0; i < kStackOfC.size(); ++i) {
        if (context != nullptr || i != without) out[size++] = kStackOfC[i];
      }
      control->end = later_end;
      return size;
    };
  }
  // The clauses of iterators from the frame `index`.
  std::set<std::string> clauses_from(size_t index) {
    const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
    return clauses(*walker,
                   {{Kind::next, static_cast<uint8_t>(index)}, {Kind::open_frame}, {Kind::drain}});
  }
  std::set<std::string> clauses_from(size_t index, size_t left_out) {
    without = left_out;
    return clauses_from(index);
  }
  std::set<std::string> clauses_from_last(int end, int end_of_later_ones) {
    control->end = end;
    later_end = end_of_later_ones;
    return clauses_from(kStackOfC.size() - 1);
  }
  static inline Control* control = nullptr;
  static inline size_t without = 0;  // a frame that iterators from frames do not give
  static inline int later_end = 0;   // of iterators but the first
};

TEST_F(SequenceInCTest, ARightApiIsNeverComplainedAbout) {
  std::mt19937 rng(6);
  const auto walker = make_walker(WalkerId::asgst_iterator, exports_);
  for (int i = 0; i < 20'000; ++i) {
    control->end = later_end = i % 3 == 0 ? -17 : 0;
    const auto calls = any_calls(rng);
    ASSERT_EQ(clauses(*walker, calls), std::set<std::string>{})
        << "sequence " << i << ": " << details_ << said(calls);
  }
}

TEST_F(SequenceInCTest, FramesBehindOneThatAnIteratorIsOpenedFromAreTheSame) {
  EXPECT_EQ(clauses_from(1, /*left_out=*/2), std::set<std::string>{"iterator-frame"});
  EXPECT_EQ(clauses_from(6, /*left_out=*/7), std::set<std::string>{"iterator-next"});
  without = kStackOfC.size();
  EXPECT_EQ(clauses_from_last(0, -17), std::set<std::string>{"iterator-next"});
}

TEST_F(SequenceInCTest, WhatIsNotCertainOfAFrameOfCIsNotComplainedAbout) {
  const std::set<std::string> none;
  EXPECT_EQ(clauses_from(0, /*left_out=*/1), none) << "the innermost one's pc may be anything";
  EXPECT_EQ(clauses_from(1, /*left_out=*/3), none) << "where Java begins is not known";
  EXPECT_EQ(clauses_from(1, /*left_out=*/6), none);
  EXPECT_EQ(clauses_from(5, /*left_out=*/6), none) << "the call stub is none of C";
  without = kStackOfC.size();
  EXPECT_EQ(clauses_from_last(-17, 0), none) << "nor is it known why another one went no further";
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
        WrongApi{"FrameLeftWithAnError",
                 Defect::leaves_frames_of_errors,
                 {{Kind::select, 1}, {Kind::next}},
                 "iterator-frame-not-cleared"},
        WrongApi{"GoesOnIntoJava",
                 Defect::goes_on_into_java,
                 {{Kind::open_to_java}, {Kind::drain}},
                 "iterator-next"},
        WrongApi{"GivesAnotherJavaFrame",
                 Defect::gives_another_java_frame,
                 {{Kind::open_to_java}, {Kind::drain}},
                 "iterator-frame-at-end"},
        WrongApi{"GivesAJavaFrameAtTheEnd",
                 Defect::gives_a_java_frame_at_the_end,
                 {{Kind::drain}},
                 "iterator-frame-at-end"},
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

// What an iterator gives that is opened from the `index`th of these frames.
IteratorModel::Part part_from(std::span<const ASGST_Frame> frames, size_t index,
                              const IteratorModel::Places& places = {},
                              int32_t options = ASGST_INCLUDE_NON_JAVA_FRAMES) {
  IteratorModel model(places);
  model.reset();
  for (const ASGST_Frame& frame : frames) model.record(frame);
  model.record_end(ASGST_NO_FRAME);
  const int handle = 0;
  model.open(&handle, {}, /*from_frame=*/false, /*opener=*/0, /*to_java=*/false);
  for (size_t i = 0; i <= index; ++i) model.advance(&handle);
  return model.part_from_last(options);
}
size_t begins_at(std::span<const ASGST_Frame> frames, size_t index) {
  return part_from(frames, index).begin;
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
  EXPECT_EQ(begins_at(frames, 0), IteratorModel::kNone) << "a stub";
  EXPECT_EQ(begins_at(frames, 2), IteratorModel::kNone);
  EXPECT_EQ(begins_at(frames, 3), 3);
  const std::array interpreted = {stub, frame(ASGST_FRAME_JAVA, 0, 0x1010)};
  EXPECT_EQ(begins_at(interpreted, 1), 1);
  const std::array native = {frame(ASGST_FRAME_JAVA_NATIVE, 0, 0x1000),
                             frame(ASGST_FRAME_JAVA_INLINED, 4, 0x1010),
                             frame(ASGST_FRAME_JAVA, 4, 0x1010)};
  EXPECT_EQ(begins_at(native, 2), 1);
}

TEST(IteratorModelTest, OfAFrameOfCTheNextOnesAreKnownWhereItHasCalled) {
  constexpr IteratorModel::Places kPlaces = {
      .code_cache_begin = 0x80, .code_cache_end = 0x90, .handlers_return_to = 0x12};
  std::array<ASGST_Frame, 5> frames = {};
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i].type = ASGST_FRAME_NON_JAVA;
    frames[i].pc = reinterpret_cast<void*>(0x10 + i);
  }
  EXPECT_EQ(part_from(frames, 2, kPlaces).begin, 2U) << "the trampoline itself is returned to";
  EXPECT_EQ(part_from(frames, 3, kPlaces).begin, IteratorModel::kNone);
  EXPECT_EQ(part_from(frames, 4, kPlaces).begin, 4U);
  EXPECT_EQ(part_from(frames, 4, kPlaces).end, IteratorModel::kNone) << "the thread's end";
  EXPECT_EQ(part_from(frames, 4, kPlaces, /*options=*/0).begin, IteratorModel::kNone)
      << "not asked for";
}

}  // namespace
}  // namespace framestorm
