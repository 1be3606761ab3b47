// JFR's requests.
#include <algorithm>

#include "harness/base/poke.h"
#include "harness/input/thread_state.h"
#include "harness/input/walker_table.h"
#include "harness/oracles/walker_oracle_fixture.h"
#include "harness/victim/context.h"

namespace framestorm::walker_oracle_test {
namespace {

using jvm_test::clauses_of;
using stand_in::Defect;

uintptr_t innermost_frame_pointer = 0;

// Of a victim whose frames are the interpreter's: each has its own, and stands on its caller's.
size_t stack_with_frame_pointers(void* context, stand_in::Frame* out, size_t room) {
  const size_t size = stack_of_victim(context, out, room);
  uintptr_t fp = innermost_frame_pointer;
  uintptr_t sp = out[0].sp;
  for (size_t i = 0; i < size; ++i) {
    out[i].sp = sp;
    sp += 2 * sizeof(uintptr_t);
    if (out[i].type == stand_in::Type::cpp) continue;
    out[i].fp = fp;
    sp = fp + 2 * sizeof(uintptr_t);
    fp = *reinterpret_cast<const uintptr_t*>(fp);
  }
  return size;
}

class RequestOracleTest : public WalkerOracleTest {
 protected:
  bool start_and_stand_interpreted() {
    if (!start_and_stand(ScenarioId::interpreted_recursion)) return false;
    innermost_frame_pointer =
        get_register(victim(ScenarioId::interpreted_recursion).context_copy, Register::fp);
    control_->stack = &stack_with_frame_pointers;
    return true;
  }
};

const char* native_entry() {
  return Jvm::get().feature() < 21 ? "method entry point (kind = native)"
                                   : "native method entry point (kind = native)";
}

TEST_F(RequestOracleTest, AnInterruptedFrameIsAtTheBytecodeOfTheRegister) {
  ASSERT_TRUE(start_and_stand_interpreted());
  Input plain = input(WalkerId::jfr_request);
  plain.scenario = ScenarioId::interpreted_recursion;
  const auto clauses = [&](uint32_t sampler) {
    plain.call.options = sampler;
    return clauses_of(walk(plain).findings);
  };
  const uintptr_t interrupted = victim(ScenarioId::interpreted_recursion).pc;
  for (const uintptr_t pc : {interrupted, uintptr_t{0}}) {
    made.top_pc = pc;
    control_->defect = Defect::none;
    EXPECT_EQ(clauses(0), std::vector<std::string>{});
    EXPECT_EQ(clauses(kJavaSampler), std::vector<std::string>{});
    control_->defect = Defect::request_has_another_bci;
    EXPECT_EQ(clauses(0), std::vector<std::string>{pc != 0 ? "contract:old-bytecode"
                                                           : "contract:request-of-no-frame"});
    EXPECT_EQ(clauses(kJavaSampler), std::vector<std::string>{"contract:request-of-no-frame"});
  }
}

TEST_F(RequestOracleTest, ARequestIsOfTheInnermostFrameThatStands) {
  ASSERT_TRUE(start_and_stand_interpreted());
  Victim& spinning = session().victims().of(ScenarioId::interpreted_recursion);
  static int32_t innermost_tier = 0;
  control_->stack = [](void* context, stand_in::Frame* out, size_t room) {
    const size_t size = stack_with_frame_pointers(context, out, room);
    out[0].tier = innermost_tier;
    return size;
  };
  Input plain = input(WalkerId::jfr_request);
  plain.scenario = ScenarioId::interpreted_recursion;
  const auto is_reported = [&](uintptr_t pc, size_t left_out, int32_t of_tier) {
    spinning.pc = pc;
    innermost_tier = of_tier;
    control_->request_from = left_out;
    const auto clauses = clauses_of(walk(plain).findings);
    return std::ranges::count(clauses, "contract:request-skips-frames") == 1;
  };
  const uintptr_t was = spinning.pc;
  const uintptr_t inside = entry_of(CodeKind::codelet, "iadd");
  const uintptr_t leaving = entry_of(CodeKind::codelet, "ireturn");
  constexpr int32_t kInterpreted = 0;
  constexpr int32_t kC1 = 1;
  EXPECT_FALSE(is_reported(inside, 0, kInterpreted));
  EXPECT_TRUE(is_reported(inside, 1, kInterpreted));
  EXPECT_FALSE(is_reported(leaving, 1, kInterpreted));
  const uintptr_t entering_native = entry_of(CodeKind::codelet, native_entry());
  EXPECT_FALSE(is_reported(entering_native, 1, kInterpreted));
  EXPECT_TRUE(is_reported(entering_native, 2, kInterpreted));
  EXPECT_TRUE(is_reported(leaving, 2, kInterpreted));
  EXPECT_TRUE(is_reported(leaving, 1, kC1));
  spinning.pc = was;
}

TEST_F(RequestOracleTest, ARequestInTheInterpreterIsAtAFramePointer) {
  ASSERT_TRUE(start_and_stand_interpreted());
  static ptrdiff_t words = 0;
  control_->stack = [](void* context, stand_in::Frame* out, size_t room) {
    const size_t size = stack_with_frame_pointers(context, out, room);
    out[0].fp += static_cast<uintptr_t>(words) * sizeof(uintptr_t);
    return size;
  };
  Input plain = input(WalkerId::jfr_request);
  plain.scenario = ScenarioId::interpreted_recursion;
  const auto reported = [&](ptrdiff_t beside) {
    words = beside;
    return times_reported(plain, "request-of-no-frame");
  };
  EXPECT_EQ(reported(0), 0);
  EXPECT_EQ(reported(-1), 1) << "another word of the frame";
  const auto& spinning = victim(ScenarioId::interpreted_recursion);
  EXPECT_EQ(reported(static_cast<ptrdiff_t>(spinning.sp - innermost_frame_pointer) /
                     static_cast<ptrdiff_t>(sizeof(uintptr_t))),
            1)
      << "the thread's sp";
}

// Whatever was mutated.
TEST_F(WalkerOracleTest, ARequestHasABytecodeOfTheMethodInItsFrame) {
  ASSERT_TRUE(start_and_stand(ScenarioId::interpreted_recursion));
  static uintptr_t frame_pointer = 0;
  static int32_t bci = 0;
  control_->stack = [](void* context, stand_in::Frame* out, size_t room) {
    const size_t size = stack_of_victim(context, out, room);
    out[0].fp = frame_pointer;
    out[0].bci = bci;
    return size;
  };
  Input mutated = mutated_input(WalkerId::jfr_request);
  mutated.scenario = ScenarioId::interpreted_recursion;
  const Victim& spinning = victim(ScenarioId::interpreted_recursion);
  const uintptr_t fp = get_register(spinning.context_copy, Register::fp);
  const auto reported = [&](uintptr_t at, int32_t its) {
    frame_pointer = at;
    bci = its;
    return times_reported(mutated, "bytecode-of-no-method");
  };
  EXPECT_EQ(reported(fp, 1), 0);
  EXPECT_EQ(reported(fp, 1000), 1) << "behind its last one";
  EXPECT_EQ(reported(fp - sizeof(uintptr_t), 1), 1) << "another word is no method";
  EXPECT_EQ(reported(spinning.sp, 1), 0) << "below the thread's sp";
}

TEST_F(RequestOracleTest, ARequestOfBytecodesDoesNotSayThatTheyAreNative) {
  ASSERT_TRUE(start_and_stand_interpreted());
  Input plain = input(WalkerId::jfr_request);
  plain.scenario = ScenarioId::interpreted_recursion;
  EXPECT_EQ(clauses_of(walk(plain).findings), std::vector<std::string>{});
  control_->defect = Defect::request_says_native;
  EXPECT_EQ(clauses_of(walk(plain).findings),
            std::vector<std::string>{"contract:request-of-no-frame"});
}

TEST_F(WalkerOracleTest, ARequestStartsFromTheAnchor) {
  ASSERT_TRUE(start_and_stand(ScenarioId::c1));
  control_->defect = Defect::request_is_biased;
  const Victim& spinning = victim(ScenarioId::c1);
  const auto& layout = session().jvm().layout();
  const auto at = [&](size_t offset) -> uintptr_t& {
    return *reinterpret_cast<uintptr_t*>(static_cast<std::byte*>(spinning.java_thread) + offset);
  };
  const uintptr_t stub = entry_of(CodeKind::stub, "call_stub");
  const uintptr_t codelet = entry_of(CodeKind::codelet, "iadd");
  const auto reported = [&](uintptr_t sp, uintptr_t pc, uint32_t state = kThreadInJava) {
    *reinterpret_cast<uint32_t*>(&at(layout.state)) = state;
    at(layout.last_java_sp) = sp;
    at(layout.last_java_pc) = pc;
    const auto clauses = clauses_of(walk(input(WalkerId::jfr_request)).findings);
    return std::ranges::count(clauses, "contract:biased-in-a-method");
  };
  EXPECT_EQ(reported(spinning.sp, spinning.pc), 1);
  EXPECT_EQ(reported(spinning.sp, stub), 0);
  EXPECT_EQ(reported(spinning.sp, codelet), 0) << "its call may be still to come";
  EXPECT_EQ(reported(spinning.sp + 8, codelet), 1);
  const char* const native = native_entry();
  for (const char* const returns : {"return_register_finalizer", "goto", native}) {
    EXPECT_EQ(reported(spinning.sp + 8, entry_of(CodeKind::codelet, returns)), 0) << returns;
  }
  uintptr_t& below = *reinterpret_cast<uintptr_t*>(spinning.sp + 8);
  {
    const Poke poked(&below, spinning.pc);
    EXPECT_EQ(reported(spinning.sp + 16, 0), 1) << "the anchor's pc is below its sp";
    below = stub;
    EXPECT_EQ(reported(spinning.sp + 16, 0), 0);
  }
  EXPECT_EQ(reported(spinning.sp + 8, entry_of(CodeKind::codelet, native), kThreadInNative), 1);
  EXPECT_EQ(reported(0, 0, kThreadInNative), 0) << "it has no Java frames";
  *reinterpret_cast<uint32_t*>(&at(layout.state)) = kThreadInJava;
  at(layout.last_java_sp) = at(layout.last_java_pc) = 0;
}

}  // namespace
}  // namespace framestorm::walker_oracle_test
