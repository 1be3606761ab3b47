// Answers of threads in Java, by a walker that gives whatever a test says.
#include "harness/executor/poll_answer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/executor/run_counts.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::JvmTest;
using jvm_test::Walked;

using Clauses = std::vector<std::string>;

class Answering final : public jvm_test::AnsweringWalker {
 public:
  struct Answer {
    bool faults = false;
    const ThreadSlot* once_it_runs = nullptr;  // the thread, whose poll nobody arms
    std::vector<jmethodID> methods;
    std::map<size_t, FrameType> types;  // of frames that are not interpreted
    int32_t innermost_bci = 0;          // the others have 0
  };
  explicit Answering(const Answer* given) : given_(*given) {}
  std::optional<int32_t> answer(JNIEnv*, void*, std::byte* frames, int32_t) override {
    if (given_.faults) return std::nullopt;
    while (given_.once_it_runs != nullptr && given_.once_it_runs->phase != ThreadPhase::running) {
      std::this_thread::yield();
    }
    for (size_t i = 0; i < given_.methods.size(); ++i) {
      std::byte* const frame = frames + i * layout().stride;
      std::memset(frame, 0, layout().stride);
      *reinterpret_cast<jmethodID*>(frame + layout().method) = given_.methods[i];
      if (i == 0) {
        *reinterpret_cast<int32_t*>(frame + layout().bci) = given_.innermost_bci;
      }
      const auto type = given_.types.find(i);
      if (type == given_.types.end()) continue;
      const auto number = std::ranges::find(layout().types, type->second) - layout().types.begin();
      frame[layout().type] = static_cast<std::byte>(number);
    }
    return given_.methods.empty() ? kWrongState : static_cast<int32_t>(given_.methods.size());
  }

 private:
  const Answer& given_;
};

class PollAnswer : public JvmTest {
 protected:
  void SetUp() override {
    start({ScenarioId::c1});
    ASSERT_FALSE(HasFatalFailure());
    executor().replace_walker(std::make_unique<Answering>(&answer_));
    halt_in_java(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    Input by_asgct;
    by_asgct.scenario = ScenarioId::c1;
    for (const Frame& frame : walk(by_asgct).frames) methods().push_back(frame.method);
    input_ = by_asgct;
    input_.walker = WalkerId::jfr_trace;
  }
  std::vector<jmethodID>& methods() { return answer_.methods; }
  // World halted.
  Clauses clauses() {
    const Walked walked = walk(input_);
    EXPECT_TRUE(walked.findings.empty()) << explain(walked);
    EXPECT_TRUE(walked.outcome.has_request);
    return clauses(walked.outcome);
  }
  Clauses clauses(const Outcome& walked) {
    return clauses_of(answer_at_poll(session(), input_, walked).findings);
  }
  // Its request is of one frame, an interpreted one that stands.
  Outcome walk_in_one_frame() {
    Outcome walked = walk(input_).outcome;
    walked.requested.assign(1, {});
    walked.requested.front().tier = 0;
    walked.requested_stands = true;
    return walked;
  }
  void make_stale() {
    Mutation mutation;
    mutation.reg = Register::sp;
    mutation.value.kind = ValueKind::real_sp;
    mutation.value.delta = -64;
    input_.mutations.push_back(mutation);
  }

  Answering::Answer answer_;
  Input input_;
};

TEST_F(PollAnswer, TheThreadsFramesAreRight) { EXPECT_EQ(clauses(), Clauses{}); }

TEST_F(PollAnswer, AFrameThatIsMissingIsFound) {
  methods().erase(methods().begin());
  EXPECT_EQ(clauses(), Clauses{"contract:wrong-frames"});
}

TEST_F(PollAnswer, FramesThatAreLostBeforeTheFirstAreToldFromWrongOnes) {
  Outcome walked = walk(input_).outcome;
  for (const jmethodID method : methods()) {
    walked.requested.emplace_back();
    walked.requested.back().method = method;
  }
  methods().erase(methods().begin());
  EXPECT_EQ(clauses(walked), Clauses{"contract:sample-skips-frames"});
  walked.requested.back().method = nullptr;
  halt_in_java(ScenarioId::c1);
  EXPECT_EQ(clauses(walked), Clauses{"contract:wrong-frames"});
}

// The halted thread's second frame was inlined, and the answer has the same methods and bcis.
TEST_F(PollAnswer, AnInlinedFrameThatIsCalledCompiledIsFound) {
  Outcome walked = walk(input_).outcome;
  for (const jmethodID method : methods()) {
    JavaFrame frame;
    frame.method = method;
    frame.type = walked.requested.size() == 1 ? FrameType::inlined : FrameType::compiled;
    walked.requested.push_back(frame);
  }
  for (const auto& [type, found] : {std::pair(FrameType::inlined, Clauses{}),
                                    {FrameType::interpreted, Clauses{}},
                                    {FrameType::compiled, {"contract:wrong-frame-types"}}}) {
    answer_.types[1] = type;
    halt_in_java(ScenarioId::c1);
    EXPECT_EQ(clauses(walked), found);
  }
}

// The thread was in the outer one of the two frames that the answer begins with, and cannot have left it.
TEST_F(PollAnswer, AnAnswerThatDoesNotBeginWithTheThreadsFrameIsFound) {
  Outcome walked = walk_in_one_frame();
  JavaFrame& then = walked.requested.front();
  for (const size_t at : {0U, 1U}) {
    then.method = methods()[at];
    for (const bool stands : {false, true}) {
      walked.requested_stands = stands;
      const bool is_elsewhere = at == 1 && stands;
      halt_in_java(ScenarioId::c1);
      EXPECT_EQ(clauses(walked), is_elsewhere ? Clauses{"contract:sample-elsewhere"} : Clauses{});
    }
  }
}

// It may have passed a poll before. Nobody is to take that for an answer that was judged.
TEST_F(PollAnswer, AnAnswerWithoutAnArmedPollMayBeginElsewhereAndIsCounted) {
  Outcome walked = walk_in_one_frame();
  walked.requested.front().method = methods()[1];
  RunCounts counts;
  counts.note(input_, walked);
  for (const bool is_armed : {true, false}) {
    halt_in_java(ScenarioId::c1);
    answer_.once_it_runs = is_armed ? nullptr : victim(ScenarioId::c1).slot;
    const Outcome answer = answer_at_poll(session(), input_, walked);
    EXPECT_EQ(clauses_of(answer.findings),
              is_armed ? Clauses{"contract:sample-elsewhere"} : Clauses{});
    counts.note_answer(input_, answer);
  }
  const auto counted = counts.summary()["by_walker"]["jfr-trace"];
  EXPECT_EQ(counted["asked_at_poll"], 2);
  EXPECT_EQ(counted["answered_at_poll"], 2);
  EXPECT_EQ(counted["unarmed_at_poll"], 1);
}

// The request has a bytecode, and the frame is still there.
TEST_F(PollAnswer, AnInterpretedFrameAtAnotherBytecodeThanTheRequestsIsFound) {
  Outcome walked = walk_in_one_frame();
  JavaFrame& then = walked.requested.front();
  then.method = methods().front();
  then.bci = 3;
  answer_.types[0] = FrameType::interpreted;
  answer_.innermost_bci = 5;
  for (const auto& [bci, found] :
       {std::pair(kNoBci, Clauses{}), {5, Clauses{}}, {3, {"contract:sample-elsewhere"}}}) {
    walked.requested_bci = bci;
    halt_in_java(ScenarioId::c1);
    EXPECT_EQ(clauses(walked), found) << bci;
  }
}

TEST_F(PollAnswer, AnAnswerAtAnotherPlaceOfCompiledCodeIsFound) {
  Outcome walked = walk_in_one_frame();
  JavaFrame& then = walked.requested.front();
  then.pc = victim(ScenarioId::c1).pc;
  then.tier = 1;
  then.bci = 0;
  const CodeEntry* const code = session().jvm().code_map().find(then.pc);
  ASSERT_TRUE(code != nullptr && code->debug != nullptr && code->debug->has_places());
  const auto next = code->debug->after(then.pc);
  ASSERT_FALSE(next.empty());
  answer_.types[0] = FrameType::compiled;
  for (const int32_t away : {0, 1000}) {
    answer_.innermost_bci = next.front().bci + away;
    halt_in_java(ScenarioId::c1);
    EXPECT_EQ(clauses(walked), away == 0 ? Clauses{} : Clauses{"contract:sample-elsewhere"});
  }
}

TEST_F(PollAnswer, AStaleRequestMayBeOfAnOuterFrame) {
  make_stale();
  methods().erase(methods().begin());
  EXPECT_EQ(clauses(), Clauses{});
}

TEST_F(PollAnswer, AStaleRequestIsNotOfAnotherThread) {
  make_stale();
  methods().pop_back();
  EXPECT_EQ(clauses(), Clauses{"contract:wrong-frames"});
}

TEST_F(PollAnswer, AFaultIsFound) {
  answer_.faults = true;
  make_stale();
  EXPECT_EQ(clauses(), Clauses{"contract:fault-at-poll"});
}

TEST_F(PollAnswer, NoAnswerIsFoundWhereNothingIsMutated) {
  methods().clear();
  EXPECT_EQ(clauses(), Clauses{"contract:no-answer-at-poll"});
}

TEST_F(PollAnswer, AStaleRequestMayHaveNoAnswer) {
  methods().clear();
  make_stale();
  EXPECT_EQ(clauses(), Clauses{});
}

}  // namespace
}  // namespace framestorm
