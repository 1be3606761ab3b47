// What of a sample is said to the fuzzers, and what is not. With a libjvm that is loaded and not
// started, for the code map's sake.
#include "stress/agent/sample_input.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "harness/input/text.h"
#include "harness/input/thread_state.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm::stress {
namespace {

constexpr uintptr_t kStackEnd = 0x7f0000000000, kStackBase = kStackEnd + 0x100000;
constexpr uintptr_t kSp = kStackBase - 0x2000;
constexpr uintptr_t kElsewhere = 0x123450;

class SampleInput : public testing::Test {
 protected:
  void SetUp() override {
    const char* home = std::getenv("FRAMESTORM_TEST_JDK");
    ASSERT_NE(home, nullptr) << "set FRAMESTORM_TEST_JDK, or run `scripts/framestorm test`";
    void* const libjvm =
        dlopen((std::string(home) + "/lib/server/libjvm.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(libjvm, nullptr) << dlerror();
    structs_ = std::make_unique<VmStructs>(libjvm);
    code_ = std::make_unique<CodeMap>(*structs_);
    sample_.walk.walker = WalkerId::asgst;
    sample_.walk.depth = 100;
    sample_.walk.thread_state = kThreadInJava;
    sample_.stack_end = kStackEnd;
    sample_.stack_base = kStackBase;
    sample_.registers[REG_RSP] = static_cast<greg_t>(kSp);
    sample_.registers[REG_RIP] = static_cast<greg_t>(kElsewhere);
  }

  // Where a stub of that name now is.
  uintptr_t stub(const char* name) {
    const uintptr_t at = next_;
    next_ += 0x1000;
    code_->add_stub(reinterpret_cast<const void*>(at), 0x100, name);
    code_->absorb();
    return at;
  }
  ScenarioId scenario_at(uintptr_t pc) {
    sample_.registers[REG_RIP] = static_cast<greg_t>(pc);
    return input().scenario;
  }
  Input input(SamplingMode mode = SamplingMode::same_thread) const {
    return input_of(sample_, std::as_bytes(std::span(stack_)), *code_, mode);
  }

  Sample sample_;
  std::vector<uintptr_t> stack_;

 private:
  std::unique_ptr<VmStructs> structs_;
  std::unique_ptr<CodeMap> code_;
  uintptr_t next_ = 0x7e0000000000;
};

TEST_F(SampleInput, TheScenarioIsTheOneThatStandsMostAlike) {
  EXPECT_EQ(scenario_at(stub("jbyte_disjoint_arraycopy")), ScenarioId::arraycopy);
  EXPECT_EQ(scenario_at(stub("vtable stub")), ScenarioId::vtable_dispatch);
  EXPECT_EQ(scenario_at(stub("itable stub")), ScenarioId::itable_dispatch);
  EXPECT_EQ(scenario_at(stub("sha256_implCompress")), ScenarioId::digest);
  EXPECT_EQ(scenario_at(stub("I2C/C2I adapters")), ScenarioId::adapters);
  EXPECT_EQ(scenario_at(stub("ExceptionBlob")), ScenarioId::exception_unwind);
  EXPECT_EQ(scenario_at(stub("forward exception")), ScenarioId::exception_unwind);
  EXPECT_EQ(scenario_at(stub("Interpreter")), ScenarioId::interpreted_recursion);
  EXPECT_EQ(scenario_at(kElsewhere), ScenarioId::vm_call) << "C code called from Java";
  sample_.walk.thread_state = kThreadInNative;
  EXPECT_EQ(input().scenario, ScenarioId::native_method);
  sample_.walk.thread_state = kThreadInVm;
  EXPECT_EQ(input().scenario, ScenarioId::vm_call);
  sample_.walk.thread_state = kThreadBlocked;
  EXPECT_EQ(input().scenario, ScenarioId::parked);
}

TEST_F(SampleInput, TheCallIsTheSamplesOwn) {
  EXPECT_EQ(input().mode, Mode::same_thread);
  EXPECT_EQ(input(SamplingMode::separate_thread).mode, Mode::separate_thread);
  EXPECT_EQ(input().walker, WalkerId::asgst);
  EXPECT_EQ(input().call.depth, DepthKind::raw);
  EXPECT_EQ(input().call.raw_depth, 100);
}

TEST_F(SampleInput, StackAndStubsAreSaidByWhereTheyAre) {
  const uintptr_t place = stub("call_stub");
  sample_.registers[REG_RBP] = static_cast<greg_t>(kSp) + 48;
  stack_ = {place + 5, kElsewhere, kSp - 16};
  const Input said = input();
  ASSERT_EQ(said.mutations.size(), 3U) << to_text(said);
  EXPECT_EQ(said.mutations[0].kind, MutationKind::set_register);
  EXPECT_EQ(said.mutations[0].reg, Register::fp);
  EXPECT_EQ(said.mutations[0].value.kind, ValueKind::real_sp);
  EXPECT_EQ(said.mutations[0].value.delta, 48);
  EXPECT_EQ(said.mutations[1].kind, MutationKind::set_stack_word);
  EXPECT_EQ(said.mutations[1].offset, 0);
  EXPECT_EQ(said.mutations[1].value.code.name, "call_stub");
  EXPECT_EQ(said.mutations[1].value.delta, 5);
  EXPECT_EQ(said.mutations[2].offset, 2) << "what is only in this process stays as it is";
  EXPECT_EQ(said.mutations[2].value.delta, -16);
}

TEST_F(SampleInput, AFrameAnchorIsSaidWhereThereIsOne) {
  sample_.last_java_pc = stub("call_stub");
  EXPECT_TRUE(input().mutations.empty()) << "a pc without sp is none";
  sample_.last_java_sp = kSp + 64;
  const Input said = input();
  ASSERT_EQ(said.mutations.size(), 2U) << to_text(said);
  EXPECT_EQ(said.mutations[0].field, ThreadField::last_java_sp);
  EXPECT_EQ(said.mutations[0].value.delta, 64);
  EXPECT_EQ(said.mutations[1].field, ThreadField::last_java_pc);
}

TEST_F(SampleInput, AnInputHoldsSoManyMutationsAndNoMore) {
  stack_.assign(1000, kSp);
  EXPECT_EQ(input().mutations.size(), std::min<size_t>(kMaxMutations, 64));
}

}  // namespace
}  // namespace framestorm::stress
