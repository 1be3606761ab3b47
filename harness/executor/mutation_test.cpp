// Mutations on a live JVM: each field of an Input reaches the walk, and nothing of them stays
// behind.
#include <algorithm>
#include <cstring>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/jvm/modules.h"

namespace framestorm {
namespace {

using jvm_test::explain;
using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;
using jvm_test::Walked;

constexpr size_t kWords = 64;

// What the last walk was given.
struct Seen {
  WalkTarget target;
  int32_t depth = 0;
  void* context_address = nullptr;
  ucontext_t context;
  uint64_t stack[kWords];   // from the victim's unmutated sp
  uint64_t below_base = 0;  // last word below the victim's frames_top
  uint32_t state = 0;
  uintptr_t last_java_sp = 0, last_java_pc = 0, last_java_fp = 0;
};
Seen seen;
const Victim* watched;

// Signal context.
int32_t look(const FakeWalk& walk) {
  const ThreadLayout& layout = Jvm::get().layout();
  seen.target = *walk.target;
  seen.depth = walk.depth;
  seen.context_address = walk.context;
  if (walk.context != nullptr) std::memcpy(&seen.context, walk.context, sizeof seen.context);
  std::memcpy(seen.stack, reinterpret_cast<const void*>(watched->sp), sizeof seen.stack);
  seen.below_base = read_at<uint64_t>(reinterpret_cast<const void*>(watched->frames_top - 8));
  if (watched->is_java_thread) {
    const void* thread = watched->java_thread;
    seen.state = read_at<uint32_t>(thread, layout.state);
    seen.last_java_sp = read_at<uintptr_t>(thread, layout.last_java_sp);
    seen.last_java_pc = read_at<uintptr_t>(thread, layout.last_java_pc);
    seen.last_java_fp = read_at<uintptr_t>(thread, layout.last_java_fp);
  }
  return -1;
}

SymbolicValue raw(uint64_t value) {
  SymbolicValue result;
  result.kind = ValueKind::raw;
  result.raw = value;
  return result;
}

SymbolicValue value(ValueKind kind, int32_t delta = 0, uint16_t index = 0) {
  SymbolicValue result;
  result.kind = kind;
  result.delta = delta;
  result.index = index;
  return result;
}

Mutation set(Register reg, const SymbolicValue& to) {
  Mutation mutation;
  mutation.reg = reg;
  mutation.value = to;
  return mutation;
}

Mutation set(StackAnchor anchor, int16_t offset, const SymbolicValue& to) {
  Mutation mutation;
  mutation.kind = MutationKind::set_stack_word;
  mutation.anchor = anchor;
  mutation.offset = offset;
  mutation.value = to;
  return mutation;
}

Mutation set(ThreadField field, const SymbolicValue& to) {
  Mutation mutation;
  mutation.kind = MutationKind::set_thread_field;
  mutation.field = field;
  mutation.value = to;
  return mutation;
}

class MutationTest : public JvmTest {
 protected:
  // Halts with the walker that notes what it is given.
  void start_looking(const std::vector<ScenarioId>& scenarios) {
    start(scenarios);
    if (HasFatalFailure()) return;
    executor().add_walker(std::make_unique<FakeWalker>(executor().walker(WalkerId::asgct), &look));
    halt_at(scenarios.front());
  }
  void halt_at(ScenarioId scenario) {
    if (scenario == ScenarioId::c1) {
      halt_in_java(scenario);
    } else {
      halt(scenario);
    }
    if (HasFatalFailure()) return;
    watched = &victim(scenario);
    input_ = Input{};
    input_.scenario = scenario;
    input_.walker = WalkerId::plugin;
  }
  // Walks with just this mutation; `seen` is filled.
  Outcome apply(const Mutation& mutation) {
    input_.mutations = {mutation};
    const Walked walked = walk(input_);
    EXPECT_TRUE(walked.findings.empty()) << explain(walked);
    return walked.outcome;
  }
  Input input_;
};

TEST_F(MutationTest, AnUnmutatedWalkSeesTheVictimAsItIs) {
  start_looking({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    input_.mode = mode;
    EXPECT_TRUE(walk(input_).outcome.unmutated);
    EXPECT_TRUE(same_context(seen.context, watched->context_copy));
    EXPECT_EQ(seen.depth, 2048);
    EXPECT_EQ(seen.target.same_thread, mode == Mode::same_thread);
    EXPECT_EQ(seen.target.tid, watched->tid);
    EXPECT_EQ(seen.target.java_thread, watched->java_thread);
    EXPECT_EQ(seen.target.jni_env, watched->jni_env);
    EXPECT_EQ(seen.target.stack_base, watched->stack_base);
  }
}

TEST_F(MutationTest, EachRegisterReachesTheWalkAlone) {
  start_looking({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  for (size_t i = 0; i < static_cast<size_t>(Register::count); ++i) {
    const auto reg = static_cast<Register>(i);
    const Outcome outcome = apply(set(reg, raw(0x5a5a0000 + i)));
    EXPECT_FALSE(outcome.unmutated);
    EXPECT_EQ(outcome.unresolved, 0U);
    for (size_t k = 0; k < static_cast<size_t>(Register::count); ++k) {
      const auto other = static_cast<Register>(k);
      EXPECT_EQ(get_register(seen.context, other),
                k == i ? 0x5a5a0000 + i : get_register(watched->context_copy, other))
          << name_of(other) << " when " << name_of(reg) << " is set";
    }
  }
}

TEST_F(MutationTest, EachKindOfValueIsWhatItsNameSays) {
  start_looking({ScenarioId::c1, ScenarioId::interpreted_recursion, ScenarioId::native_method});
  ASSERT_FALSE(HasFatalFailure());
  const auto r3 = [&](const SymbolicValue& to) {
    EXPECT_EQ(apply(set(Register::r3, to)).unresolved, 0U) << name_of(to.kind);
    return get_register(seen.context, Register::r3);
  };
  const uintptr_t own = get_register(watched->context_copy, Register::r3);
  EXPECT_EQ(r3(value(ValueKind::real, 24)), own + 24);
  EXPECT_EQ(r3(value(ValueKind::real_sp, -64)), watched->sp - 64);
  EXPECT_EQ(r3(value(ValueKind::real_fp, 8)), watched->fp + 8);
  EXPECT_EQ(r3(value(ValueKind::real_pc, 5)), watched->pc + 5);
  EXPECT_EQ(r3(value(ValueKind::stack_base, -8)), watched->stack_base - 8);
  EXPECT_EQ(r3(value(ValueKind::stack_end, 16)), watched->stack_end + 16);
  EXPECT_EQ(r3(value(ValueKind::misaligned, 2)), (own & ~uintptr_t{7}) + 3);
  EXPECT_EQ(r3(value(ValueKind::slot, 1, 3)),
            read_at<uint64_t>(reinterpret_cast<const void*>(watched->sp + 24)) + 1);
  EXPECT_EQ(r3(raw(0x123456789abcdef0U)), 0x123456789abcdef0U);
  const uintptr_t other_sp = r3(value(ValueKind::other_sp));
  EXPECT_NE(other_sp, watched->sp);
  EXPECT_TRUE(std::ranges::any_of(session().victims().halted(),
                                  [&](const Victim* v) { return v->sp == other_sp; }));
  EXPECT_TRUE(std::ranges::any_of(session().victims().halted(), [&](const Victim* v) {
    return v->pc == r3(value(ValueKind::other_pc, 0, 1)) && v != watched;
  }));
  const Modules modules = Modules::snapshot();
  EXPECT_EQ(r3(value(ValueKind::libjvm_text)), modules.by_name("libjvm.so")->text_begin);
  EXPECT_EQ(r3(value(ValueKind::libc_text)), modules.by_name("libc.so")->text_begin);
  EXPECT_EQ(modules.find(r3(value(ValueKind::unmapped))), nullptr);
  EXPECT_NE(r3(value(ValueKind::java_heap)), 0U);
  EXPECT_NE(r3(value(ValueKind::guard_page)), 0U);
  SymbolicValue code;
  code.kind = ValueKind::code;
  code.code = {CodeKind::nmethod, 1, CodeAnchor::entry, "framestorm/C1.spin"};
  code.delta = 4;
  const CodePosition position =
      session().jvm().code_map().describe(r3(code)).value_or(CodePosition{});
  EXPECT_EQ(position.ref.name, "framestorm/C1.spin");
  EXPECT_EQ(position.delta, 4);
}

TEST_F(MutationTest, StackWordsAreSetFromEachAnchor) {
  start_looking({ScenarioId::native_method});  // in native: it has a last Java sp
  ASSERT_FALSE(HasFatalFailure());
  const auto address_of = [&](uintptr_t base, int words) {
    return static_cast<int64_t>(base - watched->sp) / 8 + words;
  };
  const uintptr_t last_sp =
      read_at<uintptr_t>(watched->java_thread, session().jvm().layout().last_java_sp);
  ASSERT_NE(last_sp, 0U);
  const struct {
    StackAnchor anchor;
    uintptr_t base;
  } anchors[] = {{StackAnchor::sp, watched->sp},
                 {StackAnchor::fp, watched->fp},
                 {StackAnchor::last_java_sp, last_sp}};
  for (const auto& [anchor, base] : anchors) {
    ASSERT_EQ(apply(set(anchor, 1, raw(0xfeedface))).unresolved, 0U) << name_of(anchor);
    const int64_t index = address_of(base, 1);
    ASSERT_GE(index, 0) << name_of(anchor);
    ASSERT_LT(index, static_cast<int64_t>(kWords)) << name_of(anchor);
    for (size_t i = 0; i < kWords; ++i) {
      const auto own = read_at<uint64_t>(reinterpret_cast<const void*>(watched->sp + 8 * i));
      EXPECT_EQ(seen.stack[i], static_cast<int64_t>(i) == index ? 0xfeedface : own)
          << name_of(anchor) << " word " << i;
    }
  }
  ASSERT_EQ(apply(set(StackAnchor::stack_base, -1, raw(0xcafe))).unresolved, 0U);
  EXPECT_EQ(seen.below_base, 0xcafeU);
}

TEST_F(MutationTest, TheAnchorThatACallIntoJavaKeepsIsItsCallersLastFrame) {
  start_looking({ScenarioId::jni_sandwich, ScenarioId::native_unattached});
  ASSERT_FALSE(HasFatalFailure());
  const ThreadLayout& layout = session().jvm().layout();
  const uintptr_t anchor = watched->saved_anchor(layout);
  ASSERT_GT(anchor, watched->sp);
  const auto last_sp = read_at<uintptr_t>(reinterpret_cast<const void*>(anchor));
  EXPECT_GT(last_sp, anchor) << "the frame that has called C++, which has called Java";
  EXPECT_LT(last_sp, watched->frames_top);
  const auto last_pc = read_at<uintptr_t>(reinterpret_cast<const void*>(anchor + 8));
  const CodeEntry* const caller = session().jvm().code_map().find(last_pc);
  ASSERT_NE(caller, nullptr);
  EXPECT_NE(caller->name.find("(kind = native)"), std::string::npos)
      << caller->name << " is not what Harness.callBack runs in";
  EXPECT_EQ(apply(set(StackAnchor::saved_anchor, 0, raw(1))).unresolved, 0U);
  EXPECT_EQ(session().victims().of(ScenarioId::native_unattached).saved_anchor(layout), 0U);
}

TEST_F(MutationTest, WordsOffTheStackAreNotSet) {
  start_looking({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  const Mutation off[] = {set(StackAnchor::sp, -17, raw(1)),        // below the red zone
                          set(StackAnchor::stack_base, 0, raw(1)),  // above the stack
                          set(StackAnchor::stack_base, 30000, raw(1))};
  for (const Mutation& mutation : off) {
    const Outcome outcome = apply(mutation);
    EXPECT_EQ(outcome.unresolved, 1U);
    EXPECT_EQ(outcome.status, Outcome::Status::walked);
  }
}

TEST_F(MutationTest, EachThreadFieldReachesTheWalk) {
  start_looking({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  apply(set(ThreadField::state, raw(4)));
  EXPECT_EQ(seen.state, 4U);
  EXPECT_EQ(seen.last_java_sp, 0U) << "the other fields stay";
  apply(set(ThreadField::last_java_sp, value(ValueKind::real_sp, 8)));
  EXPECT_EQ(seen.last_java_sp, watched->sp + 8);
  EXPECT_EQ(seen.state, kThreadInJava);
  apply(set(ThreadField::last_java_pc, value(ValueKind::real_pc)));
  EXPECT_EQ(seen.last_java_pc, watched->pc);
  apply(set(ThreadField::last_java_fp, value(ValueKind::real_fp, 1)));
  EXPECT_EQ(seen.last_java_fp, watched->fp + 1);
}

TEST_F(MutationTest, ThreadFieldsOfANativeThreadAreLeftOut) {
  start_looking({ScenarioId::native_unattached});
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(apply(set(ThreadField::state, raw(4))).unresolved, 1U);
}

TEST_F(MutationTest, EachDepthReachesTheWalk) {
  start_looking({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  Input plain;
  plain.scenario = ScenarioId::c1;
  const int32_t exact = walk(plain).outcome.result;
  ASSERT_GT(exact, 3);
  const auto depth = [&](DepthKind kind, WalkerId walker, int32_t raw_depth = 0) {
    Input input;
    input.scenario = ScenarioId::c1;
    input.walker = walker;
    input.call.depth = kind;
    input.call.raw_depth = raw_depth;
    return walk(input).outcome.result;
  };
  // By the real walker's results: exact is measured with the walker that is asked.
  EXPECT_EQ(depth(DepthKind::one, WalkerId::asgct), 1);
  EXPECT_EQ(depth(DepthKind::exact, WalkerId::asgct), exact);
  EXPECT_EQ(depth(DepthKind::exact_minus_1, WalkerId::asgct), exact - 1);
  EXPECT_EQ(depth(DepthKind::exact_plus_1, WalkerId::asgct), exact);
  EXPECT_EQ(depth(DepthKind::raw, WalkerId::asgct, 2), 2);
  const struct {
    DepthKind kind;
    int32_t raw;
    int32_t expected;
  } depths[] = {{DepthKind::normal, 0, 2048},
                {DepthKind::zero, 0, 0},
                {DepthKind::one, 0, 1},
                {DepthKind::exact, 0, exact},
                {DepthKind::exact_minus_1, 0, exact - 1},
                {DepthKind::exact_plus_1, 0, exact + 1},
                {DepthKind::huge, 0, kMaxDepth},
                {DepthKind::raw, -3, -3},
                {DepthKind::raw, INT32_MAX, kMaxDepth}};
  for (const auto& [kind, raw_depth, expected] : depths) {
    depth(kind, WalkerId::plugin, raw_depth);
    EXPECT_EQ(seen.depth, expected) << name_of(kind) << " " << raw_depth;
  }
}

TEST_F(MutationTest, ContextAndEnvArgumentsReachTheWalk) {
  start_looking({ScenarioId::c1, ScenarioId::interpreted_recursion});
  ASSERT_FALSE(HasFatalFailure());
  const auto call = [&](ContextArg context, EnvArg env) {
    input_.call.context = context;
    input_.call.env = env;
    return walk(input_).outcome;
  };
  EXPECT_FALSE(call(ContextArg::null, EnvArg::victim).unmutated);
  EXPECT_EQ(seen.context_address, nullptr);
  EXPECT_FALSE(call(ContextArg::misaligned, EnvArg::victim).unmutated);
  EXPECT_NE(reinterpret_cast<uintptr_t>(seen.context_address) % 8, 0U);
  EXPECT_TRUE(same_context(seen.context, watched->context_copy));
  EXPECT_FALSE(call(ContextArg::victim, EnvArg::null).unmutated);
  EXPECT_EQ(seen.target.jni_env, nullptr);
  EXPECT_FALSE(call(ContextArg::victim, EnvArg::other_victim).unmutated);
  EXPECT_EQ(seen.target.jni_env, victim(ScenarioId::interpreted_recursion).jni_env);
  EXPECT_TRUE(call(ContextArg::victim, EnvArg::victim).unmutated);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen.context_address) % 8, 0U);
}

TEST_F(MutationTest, TheScenarioPicksTheVictim) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::c1, ScenarioId::interpreted_recursion,
                                             ScenarioId::native_unattached};
  start_looking(scenarios);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<int> tids;
  for (const ScenarioId scenario : scenarios) {
    input_.scenario = scenario;
    watched = &victim(scenario);
    walk(input_);
    EXPECT_EQ(seen.target.tid, watched->tid);
    EXPECT_EQ(std::ranges::count(tids, seen.target.tid), 0);
    tids.push_back(seen.target.tid);
  }
  input_.scenario = ScenarioId::osr;  // has not been started
  EXPECT_EQ(walk(input_).outcome.status, Outcome::Status::no_victim);
  input_.scenario = ScenarioId::c1;
  input_.walker = WalkerId::gst;  // needs a running VM
  EXPECT_EQ(walk(input_).outcome.status, Outcome::Status::no_walker);
}

TEST_F(MutationTest, AMutatedFrameTripleChangesWhatTheRealWalkerSays) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input input;
  input.scenario = ScenarioId::c1;
  EXPECT_TRUE(walk(input).outcome.succeeded());
  input.mutations = {set(Register::pc, value(ValueKind::unmapped)), set(Register::sp, raw(8)),
                     set(Register::fp, raw(8))};
  EXPECT_FALSE(walk(input).outcome.succeeded());
  input.mutations.clear();
  EXPECT_TRUE(walk(input).outcome.succeeded());
}

TEST_F(MutationTest, AHaltPointIsFoundAgain) {
  start({ScenarioId::c2_inlined});
  ASSERT_FALSE(HasFatalFailure());
  const Victim& halted = victim(ScenarioId::c2_inlined);
  int found_again = 0;
  for (int i = 0; i < 5; ++i) {
    halt_in_java(ScenarioId::c2_inlined);
    ASSERT_FALSE(HasFatalFailure());
    const HaltPoint point = session().describe_halt(halted);
    ASSERT_FALSE(point.any);
    const uintptr_t pc = halted.pc;
    const uintptr_t above_sp = halted.stack_base - halted.sp;
    halt(ScenarioId::c2_inlined);  // somewhere else
    ASSERT_FALSE(HasFatalFailure());
    const auto result = session().halt_world(ScenarioId::c2_inlined, point, 0);
    EXPECT_TRUE(result.focus_there);
    // Not every place of a loop comes by within the steps of a search.
    if (!result.at_halt_point) continue;
    ++found_again;
    EXPECT_EQ(halted.pc, pc);
    EXPECT_EQ(halted.stack_base - halted.sp, above_sp);
  }
  EXPECT_GT(found_again, 0);
}

// The fuzz targets' artifacts are replayed by framestorm-native: its threads begin elsewhere below their bases.
TEST_F(MutationTest, AHaltPointOfAProgramWithOtherThreadLocalStorageIsFound) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& halted = victim(ScenarioId::c1);
  const HaltPoint point = session().describe_halt(halted);
  ASSERT_EQ(point.code.name, "framestorm/C1.spin");
  const uintptr_t pc = halted.pc;
  const uintptr_t sp = halted.sp;
  for (const int difference : {64, -64, 192}) {
    HaltPoint elsewhere = point;
    elsewhere.frame_offset += static_cast<uint32_t>(difference);
    EXPECT_TRUE(session().halt_world(ScenarioId::c1, elsewhere, 0).at_halt_point) << difference;
    EXPECT_EQ(halted.pc, pc);
    EXPECT_EQ(halted.sp, sp);
  }
  for (const int difference : {8, 4096}) {
    HaltPoint deeper = point;
    deeper.frame_offset += static_cast<uint32_t>(difference);
    EXPECT_FALSE(session().halt_world(ScenarioId::c1, deeper, 0).at_halt_point) << difference;
  }
}

TEST_F(MutationTest, AHaltPointThatIsNowhereIsNotFound) {
  start({ScenarioId::c2_inlined});
  ASSERT_FALSE(HasFatalFailure());
  HaltPoint nowhere;
  nowhere.any = false;
  nowhere.code = {CodeKind::stub, 0, CodeAnchor::entry, "no such stub"};
  EXPECT_FALSE(session().halt_world(ScenarioId::c2_inlined, nowhere, 0).at_halt_point);
}

}  // namespace
}  // namespace framestorm
