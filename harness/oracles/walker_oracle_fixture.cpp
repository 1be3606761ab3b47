#include "harness/oracles/walker_oracle_fixture.h"

#include <dlfcn.h>

#include <algorithm>

namespace framestorm::walker_oracle_test {
namespace {

using stand_in::Control;
using stand_in::Type;

// Whose stack the stand-ins walk.
struct WalkedThread {
  Walker* asgct = nullptr;
  WalkTarget target;
  ucontext_t context;  // that was given last: walks from a frame get none
};
WalkedThread walked_thread;
const Control* control = nullptr;

}  // namespace

MadeStack made;
const uintptr_t kPcOfC = reinterpret_cast<uintptr_t>(&abort) + 1;

size_t stack_of_victim(void* context, stand_in::Frame* out, size_t room) {
  struct RealFrame {
    jint bci;
    jmethodID method;
  };
  static std::array<RealFrame, 500> frames;
  ucontext_t& last = walked_thread.context;
  if (context != nullptr) copy_context(*static_cast<ucontext_t*>(context), &last);
  const ThreadIdentity::Scoped as_victim(Jvm::get().identity(), walked_thread.target.java_thread);
  if (made.collecting != nullptr) *made.collecting = false;
  const int32_t count = walked_thread.asgct->walk(
      walked_thread.target, reinterpret_cast<std::byte*>(frames.data()), frames.size(), &last);
  if (made.collecting != nullptr) *made.collecting = true;
  const auto java = static_cast<size_t>(std::max(count, 0));
  size_t first = made.c_frames.size();  // Java frame
  if (java == 0 || first + java + 5 > room) return 0;
  // A walk from the context's registers begins with the frame that has its sp.
  uintptr_t sp = get_register(last, Register::sp);
  for (size_t i = 0; i < first; ++i) {
    out[i] = {.tier = -1, .type = Type::cpp, .pc = made.c_frames[i].pc, .sp = made.c_frames[i].sp};
    sp = made.c_frames[i].sp + 16;
  }
  if (first == 0 && (made.c_frame_pc != 0 || made.stub_without_stack != 0)) {
    out[first++] = {.tier = -1, .type = Type::cpp, .pc = kPcOfC, .sp = sp - 8};
  }
  if (made.c_frame_pc != 0) out[0].pc = made.c_frame_pc;
  // Below those of Java the stub that they were called through, and what called it.
  for (size_t i = 0; i < java + 2; ++i) {
    const bool c = i >= java;
    const RealFrame& frame = frames[c ? 0 : i];
    stand_in::Frame& to = out[first + i];
    to = {};
    to.type = c ? Type::cpp : frame.bci == -3 ? Type::native : Type::java;
    to.method = c ? nullptr : frame.method;
    to.bci = c || frame.bci < 0 ? -1 : frame.bci;
    to.tier = c ? -1 : 0;
    to.pc = i == java                 ? made.entry_pc
            : c                       ? kPcOfC
            : to.type == Type::native ? made.native_pc
                                      : 0x200 + i;
    to.sp = sp + 32 * i;
    to.stub = i == java;
  }
  stand_in::Frame* const top = out + first;
  if (made.top_is_inlined) {
    top[0].type = Type::inlined;
    top[0].tier = top[1].tier = 4;
    top[1].sp = top[0].sp;
  }
  if (made.top_is_nothing) {
    top[0].method = nullptr;
    top[0].bci = -1;
  }
  if (made.top_pc != 0) top[0].pc = made.top_pc;
  if (made.top_without_stack != 0) {
    top[0].pc = made.top_without_stack;
    top[0].bci = 0;
    top[1].sp = top[0].sp;
  }
  stand_in::Frame* end = top + java + 2;
  if (made.caller_missing) {
    std::copy(top + 2, end, top + 1);
    --end;
  }
  const bool native =
      (made.one_more_native != nullptr || made.one_more_linker) && !control->in_sample;
  if (made.one_more_inlined || made.one_more_entered || native || made.stub_without_stack != 0) {
    std::copy_backward(top, end, end + 1);
    ++end;
  }
  if (made.stub_without_stack != 0) {
    top[0] = {.tier = -1, .type = Type::cpp, .pc = made.stub_without_stack, .sp = top[1].sp};
  }
  if (!made.below_java.empty()) end -= 2;
  for (const NativeFrame& frame : made.below_java) {
    *end++ = {.tier = -1, .type = Type::cpp, .pc = frame.pc, .sp = frame.sp};
  }
  if (native) {
    top[0].method = made.one_more_native;
    top[0].bci = -1;
    top[0].type = Type::native;
  }
  if (made.one_more_entered) {
    top[0].method = end[-3].method;
    top[0].bci = made.bci_of_entered;
  }
  if (made.one_more_inlined) {
    top[0].type = Type::inlined;
    top[0].tier = top[1].tier = 4;
  }
  return static_cast<size_t>(end - out);
}

void WalkerOracleTest::start(const std::vector<ScenarioId>& scenarios) {
  JvmTest::start(scenarios);
  if (HasFatalFailure()) return;
  void* const library = dlopen(FRAMESTORM_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  control_ = reinterpret_cast<Control* (*)()>(dlsym(library, "framestorm_stand_in"))();
  control = control_;
  const Exports exports("stand-in", [library](const char* name) { return dlsym(library, name); });
  for (const WalkerId id : kAddedWalkers) executor().replace_walker(make_walker(id, exports));
  walked_thread.asgct = executor().walker(WalkerId::asgct);
  made = {};
}

void WalkerOracleTest::start_if_had(ScenarioId scenario) {
  start({scenario});
  if (HasFatalFailure() || session().jvm().feature() >= scenario_info(scenario).min_feature) return;
  GTEST_SKIP() << "this JDK has no " << name_of(scenario);
}

void WalkerOracleTest::stand(ScenarioId scenario) {
  halt_in_java(scenario);
  if (!HasFatalFailure()) stand_by(scenario);
}

void WalkerOracleTest::stand_by(ScenarioId scenario) {
  *control_ = {};
  control_->stack = &stack_of_victim;
  control_->env = victim(scenario).jni_env;
  walked_thread.target = {};
  walked_thread.target.java_thread = victim(scenario).java_thread;
  walked_thread.target.jni_env = victim(scenario).jni_env;
  copy_context(victim(scenario).context_copy, &walked_thread.context);
  const auto of_c = unwinder_.unwind(
      walked_thread.context,
      [](const void*, uintptr_t pc) { return Jvm::get().code_map().in_code_cache(pc); }, nullptr);
  made.c_frames.assign(of_c.begin(), of_c.end());
  made.native_pc = entry_of(CodeKind::codelet, "method entry point (kind = zerolocals)");
  ASSERT_NE(made.native_pc, 0U);
  made.entry_pc = entry_of(CodeKind::stub, "call_stub");
  ASSERT_NE(made.entry_pc, 0U);
}

bool WalkerOracleTest::start_and_stand(ScenarioId scenario) {
  start({scenario});
  if (!HasFatalFailure()) stand(scenario);
  return !HasFatalFailure();
}

bool WalkerOracleTest::start_and_halt(ScenarioId scenario) {
  start({scenario});
  if (!HasFatalFailure()) halt(scenario);
  if (!HasFatalFailure()) stand_by(scenario);
  return !HasFatalFailure();
}

int64_t WalkerOracleTest::times_reported(const Input& input, std::string_view clause) {
  return std::ranges::count(jvm_test::clauses_of(walk(input).findings),
                            "contract:" + std::string(clause));
}

Input WalkerOracleTest::input(WalkerId walker, Mode mode) {
  Input input;
  input.scenario = ScenarioId::c1;
  input.walker = walker;
  input.mode = mode;
  return input;
}

Input WalkerOracleTest::mutated_input(WalkerId walker) {
  Input mutated = input(walker);
  mutated.mutations.resize(1);
  mutated.mutations[0].kind = MutationKind::set_register;
  mutated.mutations[0].reg = Register::r3;
  mutated.mutations[0].value.delta = 8;
  return mutated;
}

Walker* WalkerOracleTest::asgct() { return walked_thread.asgct; }

}  // namespace framestorm::walker_oracle_test
