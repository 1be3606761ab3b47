// AsyncGetStackTrace on live victims: every trace kind, error code, option and frame type of
// profile.h is reached, or stands in the table of what cannot be with the reason.
#include "profile.h"

#include <jvmti.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

using jvm_test::at_end_of_handler;
using jvm_test::JvmTest;

constexpr uint8_t kEveryKind = 0;

struct Traced {
  ASGST_CallTrace trace;
  std::vector<ASGST_CallFrame> frames;

  size_t count(uint8_t type) const {
    return static_cast<size_t>(std::count_if(
        frames.begin(), frames.end(), [&](const auto& frame) { return frame.type == type; }));
  }
  bool has_tier(int tier) const {
    return std::any_of(frames.begin(), frames.end(), [&](const auto& frame) {
      return frame.type != ASGST_FRAME_CPP && frame.java_frame.comp_level == tier;
    });
  }
  std::vector<jmethodID> methods() const {
    std::vector<jmethodID> ids;
    for (const auto& frame : frames) {
      if (frame.type != ASGST_FRAME_CPP) ids.push_back(frame.java_frame.method_id);
    }
    return ids;
  }
  std::string why() const {
    const auto* text = static_cast<const char*>(trace.frame_info);
    return "result " + std::to_string(trace.num_frames) + " kind " + std::to_string(trace.kind) +
           (text == nullptr ? "" : std::string(": ") + text);
  }
};

class AsgstTest : public JvmTest {
 protected:
  using Function = void (*)(ASGST_CallTrace*, jint, void*, uint32_t);
  using OfThread = void (*)(ASGST_CallTrace*, jint, void*, uint32_t, jlong);
  using Count = jlong (*)();

  template <typename T>
  T function(const char* name) {
    void* const address = session().jvm().symbol(name);
    EXPECT_NE(address, nullptr) << session().jvm().library_path() << " has no " << name
                                << ": test with a JDK that `framestorm jdk build` made";
    return reinterpret_cast<T>(address);
  }
  jlong contained() { return function<Count>("AsyncGetStackTraceContainedFaults")(); }

  // A walk of a halted victim from the control thread.
  Traced walk(ScenarioId scenario, uint32_t options, uint8_t kinds = kEveryKind, jint states = 0,
              jint depth = 512) {
    return walk_context(victim(scenario).slot->context, options, kinds, states, depth);
  }
  Traced walk_context(void* context, uint32_t options, uint8_t kinds = kEveryKind, jint states = 0,
                      jint depth = 512) {
    return traced(kinds, states, depth, [&](ASGST_CallTrace* trace) {
      function<Function>("AsyncGetStackTrace")(trace, depth, context, options);
    });
  }
  Traced walk_thread(jlong tid, void* context, uint32_t options) {
    return traced(kEveryKind, 0, 512, [&](ASGST_CallTrace* trace) {
      function<OfThread>("AsyncGetStackTraceOfThread")(trace, 512, context, options, tid);
    });
  }
  template <typename Walk>
  static Traced traced(uint8_t kinds, jint states, jint depth, Walk walk) {
    Traced result;
    result.frames.resize(static_cast<size_t>(std::max(depth, 0)) + 1);
    std::memset(&result.trace, 0xa5, sizeof(result.trace));
    result.trace.kind = kinds;
    result.trace.state = states;
    result.trace.frames = result.frames.data();
    walk(&result.trace);
    result.frames.resize(static_cast<size_t>(std::max(result.trace.num_frames, 0)));
    return result;
  }

  // Sets a field of the victim's JavaThread for one walk.
  template <typename T>
  Traced walk_with_field(ScenarioId scenario, size_t offset, T value, uint32_t options = 0) {
    auto* const field =
        reinterpret_cast<T*>(static_cast<char*>(victim(scenario).java_thread) + offset);
    const T saved = *field;
    *field = value;
    Traced result = walk(scenario, options);
    *field = saved;
    return result;
  }
  const ThreadLayout& layout() { return session().jvm().layout(); }
};

TEST_F(AsgstTest, AnInterpretedStackIsJavaFramesOfTierZero) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::interpreted_recursion, 0);
  ASSERT_GT(traced.trace.num_frames, 2) << traced.why();
  EXPECT_EQ(traced.trace.kind, ASGST_JAVA_TRACE);
  EXPECT_EQ(traced.trace.env_id, victim(ScenarioId::interpreted_recursion).jni_env);
  EXPECT_EQ(traced.trace.frame_info, nullptr) << traced.why();
  EXPECT_TRUE(traced.has_tier(0));
  EXPECT_EQ(traced.count(ASGST_FRAME_CPP), 0U);
  EXPECT_TRUE(traced.trace.state & JVMTI_THREAD_STATE_RUNNABLE);
}

TEST_F(AsgstTest, InlinedMethodsAreFramesOfTheirOwn) {
  start({ScenarioId::c2_inlined});
  halt_in_java(ScenarioId::c2_inlined);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::c2_inlined, 0);
  EXPECT_GT(traced.count(ASGST_FRAME_JAVA_INLINED), 0U) << traced.why();
  EXPECT_TRUE(traced.has_tier(4));
}

TEST_F(AsgstTest, NativeMethodsHaveNoBci) {
  start({ScenarioId::native_method});
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  const Traced traced = walk(ScenarioId::native_method, 0);
  ASSERT_GT(traced.count(ASGST_FRAME_JAVA_NATIVE), 0U) << traced.why();
  for (const ASGST_CallFrame& frame : traced.frames) {
    if (frame.type == ASGST_FRAME_JAVA_NATIVE) EXPECT_EQ(frame.java_frame.bci, 65535);
  }
  EXPECT_TRUE(traced.trace.state & JVMTI_THREAD_STATE_IN_NATIVE);
}

TEST_F(AsgstTest, CFramesStandBetweenTheJavaFramesAndTakeNoneAway) {
  start({ScenarioId::jni_sandwich});
  halt(ScenarioId::jni_sandwich);
  ASSERT_FALSE(HasFatalFailure());
  const Traced without = walk(ScenarioId::jni_sandwich, 0);
  const Traced with = walk(ScenarioId::jni_sandwich, ASGST_INCLUDE_C_FRAMES);
  ASSERT_GT(without.trace.num_frames, 0) << without.why();
  EXPECT_EQ(without.count(ASGST_FRAME_CPP), 0U);
  EXPECT_GT(with.count(ASGST_FRAME_CPP), 3U) << with.why();
  EXPECT_EQ(with.methods(), without.methods());
  // Native code above, between and below Java.
  EXPECT_EQ(with.frames.front().type, ASGST_FRAME_CPP);
  EXPECT_EQ(with.frames.back().type, ASGST_FRAME_CPP);
  const auto first_java = std::find_if(with.frames.begin(), with.frames.end(),
                                       [](const auto& f) { return f.type != ASGST_FRAME_CPP; });
  const auto between = std::find_if(first_java, with.frames.end(),
                                    [](const auto& f) { return f.type == ASGST_FRAME_CPP; });
  EXPECT_NE(std::find_if(between, with.frames.end(),
                         [](const auto& f) { return f.type != ASGST_FRAME_CPP; }),
            with.frames.end());
}

TEST_F(AsgstTest, WhereAContinuationBeginsIsTold) {
  start({ScenarioId::virtual_fresh, ScenarioId::virtual_remounted});
  for (const auto& [scenario, type, info] :
       {std::tuple{ScenarioId::virtual_fresh, ASGST_FRAME_CONTINUATION, ""},
        std::tuple{ScenarioId::virtual_remounted, ASGST_FRAME_CONTINUATION_FROZEN,
                   ASGST_FRAMES_FROZEN}}) {
    halt_in_java(scenario);
    ASSERT_FALSE(HasFatalFailure());
    const auto text = [](const Traced& traced) {
      const auto* const said = static_cast<const char*>(traced.trace.frame_info);
      return std::string(said == nullptr ? "" : said);
    };
    const Traced whole = walk(scenario, 0);
    const Traced own = walk(scenario, ASGST_END_AT_CONTINUATION);
    ASSERT_GT(own.trace.num_frames, 1) << own.why();
    EXPECT_EQ(text(whole), info);
    EXPECT_EQ(text(own), info);
    EXPECT_EQ(whole.count(static_cast<uint8_t>(type)), 1U);
    EXPECT_EQ(own.frames.back().type, type);
    EXPECT_GT(whole.frames.size(), own.frames.size()) << "the carrier's frames are missing";
    for (size_t i = 0; i < own.frames.size(); ++i) {
      EXPECT_EQ(own.methods()[i], whole.methods()[i]) << i;
    }
  }
}

TEST_F(AsgstTest, UnknownOptionBitsAreIgnored) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Traced plain = walk(ScenarioId::c1, 0);
  const Traced odd = walk(ScenarioId::c1, 0xfffffff0U);
  EXPECT_GT(plain.trace.num_frames, 0) << plain.why();
  EXPECT_EQ(odd.methods(), plain.methods());
}

TEST_F(AsgstTest, DepthBoundsTheFramesFromTheTop) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Traced all = walk(ScenarioId::c1, 0);
  ASSERT_GT(all.trace.num_frames, 2) << all.why();
  for (const jint depth : {0, 1, 2, all.trace.num_frames}) {
    const Traced some = walk(ScenarioId::c1, 0, kEveryKind, 0, depth);
    EXPECT_EQ(some.trace.num_frames, depth);
    const auto methods = all.methods();
    EXPECT_EQ(some.methods(), std::vector<jmethodID>(methods.begin(), methods.begin() + depth));
  }
  EXPECT_EQ(walk(ScenarioId::c1, 0, kEveryKind, 0, -1).trace.num_frames, 0);
}

TEST_F(AsgstTest, MasksRefuseOtherKindsAndStates) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Traced kind = walk(ScenarioId::c1, 0, ASGST_GC_TRACE | ASGST_CPP_TRACE);
  EXPECT_EQ(kind.trace.num_frames, ASGST_WRONG_KIND);
  EXPECT_EQ(kind.trace.kind, ASGST_JAVA_TRACE);
  const Traced state = walk(ScenarioId::c1, 0, kEveryKind, JVMTI_THREAD_STATE_SLEEPING);
  EXPECT_EQ(state.trace.num_frames, ASGST_WRONG_STATE);
  EXPECT_TRUE(state.trace.state & JVMTI_THREAD_STATE_RUNNABLE);
  EXPECT_GT(walk(ScenarioId::c1, 0, ASGST_JAVA_TRACE | ASGST_GC_TRACE,
                 JVMTI_THREAD_STATE_RUNNABLE | JVMTI_THREAD_STATE_SLEEPING)
                .trace.num_frames,
            0);
}

TEST_F(AsgstTest, StatesAreThoseOfJvmti) {
  start({ScenarioId::monitor_blocked, ScenarioId::parked, ScenarioId::sleeping});
  halt(ScenarioId::sleeping);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(walk(ScenarioId::monitor_blocked, 0).trace.state &
              JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER);
  EXPECT_TRUE(walk(ScenarioId::parked, 0).trace.state & JVMTI_THREAD_STATE_WAITING);
  EXPECT_TRUE(walk(ScenarioId::sleeping, 0).trace.state & JVMTI_THREAD_STATE_WAITING);
}

TEST_F(AsgstTest, ThreadsThatAreNotJavasAreWalkedWhenAsked) {
  start({ScenarioId::native_attached, ScenarioId::native_unattached, ScenarioId::gc_thread,
         ScenarioId::vm_thread, ScenarioId::compiler_thread});
  halt(ScenarioId::native_attached);
  ASSERT_FALSE(HasFatalFailure());
  const uint32_t all = ASGST_INCLUDE_NON_JAVA_THREADS | ASGST_INCLUDE_C_FRAMES;
  EXPECT_EQ(walk(ScenarioId::gc_thread, 0).trace.num_frames, ASGST_THREAD_NOT_JAVA);
  EXPECT_EQ(walk(ScenarioId::vm_thread, 0).trace.num_frames, ASGST_THREAD_NOT_JAVA);
  EXPECT_EQ(walk(ScenarioId::native_unattached, 0).trace.num_frames, ASGST_NO_THREAD);
  // Who walks itself is a thread: it is only not Java's.
  {
    const ThreadIdentity::Scoped nobody(session().jvm().identity(), nullptr);
    ucontext_t* const context = victim(ScenarioId::native_unattached).slot->context;
    EXPECT_EQ(walk_context(context, ASGST_WALK_SAME_THREAD).trace.num_frames,
              ASGST_THREAD_NOT_JAVA);
  }
  // Attached, but never in Java.
  EXPECT_EQ(walk(ScenarioId::native_attached, 0).trace.num_frames, ASGST_NO_JAVA_FRAME);

  for (const auto& [scenario, kind] : {std::pair{ScenarioId::gc_thread, ASGST_GC_TRACE},
                                       std::pair{ScenarioId::vm_thread, ASGST_CPP_TRACE},
                                       std::pair{ScenarioId::native_unattached, ASGST_CPP_TRACE},
                                       std::pair{ScenarioId::native_attached, ASGST_JAVA_TRACE}}) {
    const Traced traced = walk(scenario, all);
    EXPECT_EQ(traced.trace.kind, kind) << name_of(scenario);
    EXPECT_GT(traced.trace.num_frames, 1) << name_of(scenario) << ": " << traced.why();
    EXPECT_EQ(traced.count(ASGST_FRAME_CPP), traced.frames.size());
    EXPECT_EQ(traced.trace.frame_info, nullptr) << name_of(scenario) << ": " << traced.why();
    if (kind != ASGST_JAVA_TRACE) EXPECT_EQ(traced.trace.state, -1);
  }
  EXPECT_EQ(walk(ScenarioId::gc_thread, all, ASGST_JAVA_TRACE).trace.num_frames, ASGST_WRONG_KIND);
}

// While locals are pushed the return address is in rax, and the frame pointer the caller's.
TEST_F(AsgstTest, AMethodBeingEnteredIsAboveItsCaller) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::interpreted_recursion);
  const auto caller_fp = get_register(*walked.slot->context, Register::fp);
  // A caller with next to nothing on its expression stack.
  const uintptr_t sp = caller_fp - 9 * sizeof(sp);
  ucontext_t context;
  copy_context(*walked.slot->context, &context);
  set_register(&context, Register::sp, sp);
  const Traced caller = walk_context(&context, 0);
  ASSERT_GT(caller.methods().size(), 2U) << caller.why();
  // An ID is the address of a Method's.
  const auto* const method = *reinterpret_cast<const std::byte* const*>(caller.methods().front());
  const VmStructs& structs = session().jvm().structs();
  const auto entry = read_at<uintptr_t>(method, structs.required_offset("Method", "_i2i_entry"));
  set_register(&context, Register::pc, entry + 0x20);
  greg_t* const registers = context.uc_mcontext.gregs;
  registers[REG_RBX] = reinterpret_cast<greg_t>(method);
  registers[REG_R13] = static_cast<greg_t>(sp);
  registers[REG_RAX] = read_at<greg_t>(reinterpret_cast<void*>(caller_fp), sizeof(uintptr_t));
  const Traced entered = walk_context(&context, 0);
  std::vector<jmethodID> expected = caller.methods();
  expected.insert(expected.begin(), caller.methods().front());
  EXPECT_EQ(entered.methods(), expected) << entered.why();
}

// HotSpot's signal handler has the stub of a poll begin where the thread polled, with nothing pushed.
TEST_F(AsgstTest, AStubThatAPollWasSentToIsAboveThePollsFrame) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const std::vector<jmethodID> whole = walk(ScenarioId::c1, 0).methods();
  const Victim& walked = victim(ScenarioId::c1);
  ucontext_t context;
  copy_context(*walked.slot->context, &context);
  // A caller, as if it had called a poll.
  uintptr_t sp = get_register(context, Register::sp);
  uintptr_t returns_to = 0;
  std::vector<jmethodID> expected;
  const auto is_part = [&] {
    return expected.size() > 1 && expected.size() < whole.size() &&
           std::equal(expected.rbegin(), expected.rend(), whole.rbegin());
  };
  do {
    ASSERT_LT(sp, walked.stack_base) << "no caller";
    returns_to = read_at<uintptr_t>(reinterpret_cast<void*>(sp), 0);
    sp += sizeof(sp);
    set_register(&context, Register::pc, returns_to);
    set_register(&context, Register::sp, sp);
    expected = walk_context(&context, 0).methods();
  } while (!is_part());

  const auto stubs = session().jvm().code_map().entries();
  const auto is_sent_to = [](const CodeEntry& code) {
    constexpr uint8_t kPushBx = 0x53;
    return code.name == "SafepointBlob" && *reinterpret_cast<const uint8_t*>(code.begin) == kPushBx;
  };
  const auto stub = std::ranges::find_if(stubs, is_sent_to);
  ASSERT_NE(stub, stubs.end());
  const VmStructs& structs = session().jvm().structs();
  auto* const polled_at =
      reinterpret_cast<uintptr_t*>(static_cast<char*>(walked.java_thread) +
                                   structs.required_offset("JavaThread", "_saved_exception_pc"));
  auto* const top = reinterpret_cast<uintptr_t*>(sp);
  const uintptr_t saved_pc = std::exchange(*polled_at, returns_to);
  // What an earlier call has left there.
  const uintptr_t saved_top = std::exchange(*top, returns_to);
  set_register(&context, Register::pc, (*stub).begin);
  const Traced traced = walk_context(&context, 0);
  *polled_at = saved_pc;
  *top = saved_top;
  EXPECT_EQ(traced.methods(), expected) << traced.why();
}

// The stub that replaces a deoptimised frame saves all registers first, in three ways: behind a return, or to
// execute a bytecode again, with the return address on the stack; for an exception without, which it has from
// the thread only when all are saved. Here it is entered in each, by the frame's callee.
TEST_F(AsgstTest, ADeoptimisedFrameIsBelowTheStubThatSavesRegisters) {
  start({ScenarioId::deoptimized_caller});
  halt_in_java(ScenarioId::deoptimized_caller);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::deoptimized_caller);
  std::vector<jmethodID> expected = walk(ScenarioId::deoptimized_caller, 0).methods();
  const auto is_callee = [&](jmethodID method) {
    return !session().jvm().methods().find(method)->name.ends_with("inlinedCaller");
  };
  expected.erase(expected.begin(), std::ranges::find_if_not(expected, is_callee));
  ASSERT_GT(expected.size(), 2U);
  // Where its callee would return to.
  const CodeMap& codes = session().jvm().code_map();
  uintptr_t slot = get_register(*walked.slot->context, Register::sp);
  uintptr_t returned_to = 0;
  const auto is_deoptimised = [&] {
    returned_to = read_at<uintptr_t>(reinterpret_cast<void*>(slot));
    const CodeEntry* const code = codes.find(returned_to);
    return code != nullptr && code->kind == CodeKind::nmethod && code->deopt_handler == returned_to;
  };
  while (slot < walked.stack_base && !is_deoptimised()) slot += sizeof(slot);
  ASSERT_LT(slot, walked.stack_base);
  const uintptr_t sp = slot + sizeof(slot);

  const auto entries = codes.entries();
  const auto stub = std::ranges::find(entries, "DeoptimizationBlob", &CodeEntry::name);
  ASSERT_NE(stub, entries.end());
  const auto* const begin = reinterpret_cast<const uint8_t*>((*stub).begin);
  const auto* const end = reinterpret_cast<const uint8_t*>((*stub).end);
  const uint8_t saves[] = {0x55, 0x48, 0x8b, 0xec};        // push rbp; mov rbp, rsp
  const uint8_t has_saved[] = {0x41, 0xbe};                // mov r14d, ..
  const uint8_t makes_room[] = {0x68, 0, 0, 0, 0};         // push 0
  const uint8_t has_address[] = {0x48, 0x89, 0x55, 0x08};  // mov [rbp + 8], rdx
  const auto find = [end](const uint8_t* from, const auto& bytes) {
    return std::search(from, end, std::begin(bytes), std::end(bytes));
  };

  const VmStructs& structs = session().jvm().structs();
  auto* const exception_pc =
      reinterpret_cast<uintptr_t*>(static_cast<char*>(walked.java_thread) +
                                   structs.required_offset("JavaThread", "_exception_pc"));
  auto* const words = reinterpret_cast<uintptr_t*>(sp);
  const auto fp = get_register(*walked.slot->context, Register::fp);
  const std::array<uintptr_t, 2> saved = {words[-2], words[-1]};
  const uintptr_t saved_pc = std::exchange(*exception_pc, 0);
  const auto expect = [&](const uint8_t* pc, size_t pushed, uintptr_t has_fp, uintptr_t rdx = 0) {
    ucontext_t context;
    copy_context(*walked.slot->context, &context);
    set_register(&context, Register::pc, reinterpret_cast<uintptr_t>(pc));
    set_register(&context, Register::sp, sp - pushed * sizeof(sp));
    set_register(&context, Register::fp, has_fp);
    context.uc_mcontext.gregs[REG_RDX] = static_cast<greg_t>(rdx);
    const Traced traced = walk_context(&context, 0);
    EXPECT_EQ(traced.methods(), expected) << "+" << pc - begin << ": " << traced.why();
  };
  const auto expect_while_saving = [&](const uint8_t* from, const uint8_t* to) {
    expect(from, 1, fp);
    words[-2] = fp;
    expect(from + 1, 2, fp);
    for (const uint8_t* pc = from + sizeof(saves); pc <= to; ++pc) {
      expect(pc, 2, sp - 2 * sizeof(sp));
    }
  };
  words[-1] = returned_to;
  const uint8_t* next = begin;
  for (int i = 0; i < 2; ++i) {
    const uint8_t* const entry = find(next, saves);
    next = find(entry, has_saved);
    ASSERT_LT(next - entry, 1024);
    expect_while_saving(entry, next);
  }
  const uint8_t* const room = find(next, makes_room);
  ASSERT_EQ(find(room, saves), room + sizeof(makes_room));
  const uint8_t* const stored = find(room, has_address);
  ASSERT_LT(stored - room, 1024);
  // It is entered with the address in rdx, which it notes first, then the exception.
  const uint8_t* const entry = room - 14;
  ASSERT_EQ(entry[1], 0x89);
  ASSERT_EQ(entry[2], 0x97);
  words[-1] = saved[1];
  expect(entry, 0, fp, returned_to);
  *exception_pc = returned_to;
  expect(entry + 7, 0, fp);
  expect(room, 0, fp);
  words[-1] = 0;
  expect_while_saving(room + sizeof(makes_room), stored);
  // C1's stub for an exception goes there as if it returned.
  const auto c1 = std::ranges::find_if(entries, [](const CodeEntry& code) {
    return code.name.find("handle_exception_from_callee") != std::string::npos;
  });
  ASSERT_NE(c1, entries.end());
  const uint8_t leaves[] = {0xc9, 0x59, 0xff, 0xe1};  // leave; pop rcx; jmp rcx
  const auto* const end_of_c1 = reinterpret_cast<const uint8_t*>((*c1).end);
  const auto* const leave = std::search(reinterpret_cast<const uint8_t*>((*c1).begin), end_of_c1,
                                        std::begin(leaves), std::end(leaves));
  ASSERT_NE(leave, end_of_c1);
  words[-1] = reinterpret_cast<uintptr_t>(room);
  words[-2] = fp;
  expect(leave, 2, sp - 2 * sizeof(sp));
  expect(leave + 1, 1, fp);
  expect(leave + 2, 0, fp);
  std::ranges::copy(saved, words - 2);
  *exception_pc = saved_pc;
}

// After its leave a native method's code still looks for an exception.
TEST_F(AsgstTest, ANativeMethodWhoseFrameIsGoneHasItsCaller) {
  start({ScenarioId::native_method});
  halt(ScenarioId::native_method);
  ASSERT_FALSE(HasFatalFailure());
  const Traced whole = walk(ScenarioId::native_method, 0);
  ASSERT_GT(whole.methods().size(), 2U) << whole.why();
  const Victim& walked = victim(ScenarioId::native_method);
  const CodeMap& codes = session().jvm().code_map();
  const auto last_sp = read_at<uintptr_t>(walked.java_thread, layout().last_java_sp);
  const CodeEntry* const wrapper =
      codes.find(read_at<uintptr_t>(walked.java_thread, layout().last_java_pc));
  ASSERT_NE(wrapper, nullptr);
  ASSERT_EQ(wrapper->kind, CodeKind::nmethod);
  const auto is_caller = [&](uintptr_t slot) {
    const CodeEntry* const code = codes.find(read_at<uintptr_t>(reinterpret_cast<void*>(slot), 0));
    return code != nullptr && code != wrapper && code->kind == CodeKind::nmethod;
  };
  uintptr_t slot = last_sp;
  while (slot < walked.stack_base - sizeof(slot) && !is_caller(slot)) slot += sizeof(slot);
  ASSERT_TRUE(is_caller(slot));

  // From behind leave to the jump behind ret, by the instructions' lengths.
  const uint8_t end_of_frame[] = {0xc9, 0x41, 0xf6, 0x47};
  const auto* const begin = reinterpret_cast<const uint8_t*>(wrapper->begin);
  const auto* const end = reinterpret_cast<const uint8_t*>(wrapper->end);
  const auto* const leave =
      std::search(begin, end, std::begin(end_of_frame), std::end(end_of_frame));
  ASSERT_NE(leave, end);
  ASSERT_EQ(leave[41], 0xc3) << "another shape of the end";
  ASSERT_EQ(leave[42], 0xe9);
  auto* const thread = static_cast<char*>(walked.java_thread);
  auto* const state = reinterpret_cast<uint32_t*>(thread + layout().state);
  auto* const anchor = reinterpret_cast<uintptr_t*>(thread + layout().last_java_sp);
  const uint32_t saved_state = std::exchange(*state, kThreadInJava);
  const uintptr_t saved_anchor = std::exchange(*anchor, 0);
  for (const int place : {1, 6, 8, 18, 25, 30, 35, 41, 42}) {
    ucontext_t context;
    copy_context(*walked.slot->context, &context);
    set_register(&context, Register::pc, reinterpret_cast<uintptr_t>(leave + place));
    set_register(&context, Register::sp, slot);
    set_register(&context, Register::fp,
                 read_at<uintptr_t>(reinterpret_cast<void*>(slot - sizeof(slot)), 0));
    const Traced traced = walk_context(&context, 0);
    EXPECT_EQ(traced.methods(), whole.methods()) << "leave + " << place << ": " << traced.why();
  }
  *state = saved_state;
  *anchor = saved_anchor;
}

TEST_F(AsgstTest, AContextOfNoThreadIsRefused) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk_context(nullptr, 0).trace.num_frames, ASGST_NO_THREAD);
  ucontext_t elsewhere;
  copy_context(*victim(ScenarioId::c1).slot->context, &elsewhere);
  set_register(&elsewhere, Register::sp, 4096);
  EXPECT_EQ(walk_context(&elsewhere, 0).trace.num_frames, ASGST_NO_THREAD);
  // By its OS thread id the thread is known, but such an sp is of no use.
  const int tid = victim(ScenarioId::c1).tid;
  EXPECT_EQ(walk_thread(tid, &elsewhere, 0).trace.num_frames, ASGST_UNKNOWN_JAVA);
  EXPECT_GT(walk_thread(tid, victim(ScenarioId::c1).slot->context, 0).trace.num_frames, 0);
  EXPECT_EQ(walk_thread(0x7fffffff, victim(ScenarioId::c1).slot->context, 0).trace.num_frames,
            ASGST_NO_THREAD);
}

TEST_F(AsgstTest, AThreadIsFoundByItsEnv) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Victim& walked = victim(ScenarioId::c1);
  const auto of_env = [&](void* env) {
    return traced(kEveryKind, 0, 512, [&](ASGST_CallTrace* trace) {
      trace->env_id = static_cast<JNIEnv*>(env);
      function<Function>("AsyncGetStackTraceOfEnv")(trace, 512, walked.slot->context, 0);
    });
  };
  const Traced traced = of_env(walked.jni_env);
  EXPECT_GT(traced.trace.num_frames, 0) << traced.why();
  EXPECT_EQ(traced.methods(), walk(ScenarioId::c1, 0).methods());
  EXPECT_EQ(of_env(reinterpret_cast<void*>(0x1234)).trace.num_frames, ASGST_NO_THREAD);
}

TEST_F(AsgstTest, WhatIsNoCodeIsNotWalked) {
  start({ScenarioId::c1});
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  ucontext_t changed;
  copy_context(*victim(ScenarioId::c1).slot->context, &changed);
  set_register(&changed, Register::pc, 0x1000);
  const Traced no_code = walk_context(&changed, 0);
  EXPECT_EQ(no_code.trace.num_frames, ASGST_UNKNOWN_JAVA);
  EXPECT_NE(no_code.trace.frame_info, nullptr);
}

TEST_F(AsgstTest, AnInterpretedFrameThatIsNoneIsNotWalkable) {
  start({ScenarioId::interpreted_recursion});
  halt_in_java(ScenarioId::interpreted_recursion);
  ASSERT_FALSE(HasFatalFailure());
  ucontext_t changed;
  copy_context(*victim(ScenarioId::interpreted_recursion).slot->context, &changed);
  set_register(&changed, Register::fp, 8);
  EXPECT_EQ(walk_context(&changed, 0).trace.num_frames, ASGST_NOT_WALKABLE_JAVA);
}

TEST_F(AsgstTest, TheThreadsOwnFieldsAreNotBelieved) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  const auto broken_sp = walk_with_field<uintptr_t>(ScenarioId::parked, layout().last_java_sp, 8);
  EXPECT_EQ(broken_sp.trace.num_frames, ASGST_UNKNOWN_NOT_JAVA);
  const auto no_frame = walk_with_field<uintptr_t>(ScenarioId::parked, layout().last_java_sp, 0);
  EXPECT_EQ(no_frame.trace.num_frames, ASGST_NO_JAVA_FRAME);
  const auto state = walk_with_field<uint32_t>(ScenarioId::parked, layout().state, 4711);
  EXPECT_EQ(state.trace.num_frames, ASGST_UNKNOWN_STATE);
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0);
}

TEST_F(AsgstTest, DyingThreadsAreRefused) {
  start({ScenarioId::thread_exiting});
  bool refused = false;
  for (int i = 0; i < 50 && !refused; ++i) {
    halt(ScenarioId::thread_exiting);
    ASSERT_FALSE(HasFatalFailure());
    refused = walk(ScenarioId::thread_exiting, 0).trace.num_frames == ASGST_THREAD_EXIT;
  }
  EXPECT_TRUE(refused);
}

// Lets all victims leave their program points.
void stop_victims(JNIEnv* env) {
  const jclass harness = env->FindClass("framestorm/Harness");
  ASSERT_NE(harness, nullptr);
  env->SetStaticBooleanField(harness, env->GetStaticFieldID(harness, "stopped", "Z"), JNI_TRUE);
}

TEST_F(AsgstTest, WhileAThreadDeoptimisesItIsRefused) {
  start({ScenarioId::deoptimized_caller});
  halt(ScenarioId::deoptimized_caller);
  ASSERT_FALSE(HasFatalFailure());
  const Traced before = walk(ScenarioId::deoptimized_caller, 0);
  EXPECT_GT(before.trace.num_frames, 0) << before.why();
  const int tid = victim(ScenarioId::deoptimized_caller).tid;
  session().release_world();
  session().victims().resume(ScenarioId::deoptimized_caller);
  constexpr uint64_t kOnItsWayNs = 1'000'000;
  ASSERT_TRUE(World::get().halt_after(tid, kOnItsWayNs));
  stop_victims(session().jvm().env());
  ASSERT_FALSE(HasFatalFailure());
  // It returns into the frame that is not valid any more.
  const CodeRef helper = {CodeKind::function, 0, CodeAnchor::entry,
                          "_ZN14Deoptimization24fetch_unroll_info_helperEP10JavaThreadi"};
  StepGoal goal;
  goal.steps = 10'000'000;
  goal.pc = session().jvm().code_map().resolve(helper).value_or(0);
  ASSERT_NE(goal.pc, 0U);
  ThreadSlot* const slot = World::get().find(tid);
  ASSERT_TRUE(World::get().step(slot, goal));
  ASSERT_EQ(get_register(*slot->context, Register::pc), goal.pc);

  const Traced refused = walk_context(slot->context, 0);
  EXPECT_EQ(refused.trace.num_frames, ASGST_DEOPT) << refused.why();
  EXPECT_EQ(refused.trace.kind, ASGST_DEOPT_TRACE);
  EXPECT_EQ(walk_context(slot->context, 0, ASGST_JAVA_TRACE).trace.num_frames, ASGST_WRONG_KIND);
  const uint32_t all = ASGST_INCLUDE_NON_JAVA_THREADS | ASGST_INCLUDE_C_FRAMES;
  const Traced walked = walk_context(slot->context, all);
  EXPECT_EQ(walked.trace.kind, ASGST_DEOPT_TRACE);
  EXPECT_GT(walked.count(ASGST_FRAME_CPP), 0U) << walked.why();
}

TEST_F(AsgstTest, SignalHandlersStandAboveWhatTheyInterrupted) {
  start({ScenarioId::c1, ScenarioId::native_method});
  for (const ScenarioId scenario : {ScenarioId::c1, ScenarioId::native_method}) {
    scenario == ScenarioId::c1 ? halt_in_java(scenario) : halt(scenario);
    ASSERT_FALSE(HasFatalFailure());
    const Traced below = walk(scenario, ASGST_INCLUDE_C_FRAMES);
    ASSERT_GT(below.trace.num_frames, 0) << below.why();
    ucontext_t in_handler;
    at_end_of_handler(victim(scenario).slot->context, &in_handler);
    const Traced handler = walk_context(&in_handler, ASGST_INCLUDE_C_FRAMES);
    EXPECT_EQ(handler.trace.num_frames, below.trace.num_frames + 1)
        << name_of(scenario) << ": " << handler.why();
    ASSERT_FALSE(handler.frames.empty());
    EXPECT_EQ(handler.frames.front().type, ASGST_FRAME_CPP);
    EXPECT_EQ(handler.methods(), below.methods());
    EXPECT_EQ(walk_context(&in_handler, 0).methods(), below.methods());
  }
}

TEST_F(AsgstTest, DuringACollectionNothingIsWalkedUnlessAsked) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  // The collector's own flag, since the halted world collects nothing.
  const VmStructs& structs = session().jvm().structs();
  const auto heap = read_at<char*>(structs.static_address("Universe", "_collectedHeap"));
  auto* const active =
      reinterpret_cast<bool*>(heap + structs.required_offset("CollectedHeap", "_is_stw_gc_active"));
  *active = true;
  const Traced refused = walk(ScenarioId::parked, 0);
  const Traced masked = walk(ScenarioId::parked, 0, ASGST_JAVA_TRACE);
  const Traced walked = walk(ScenarioId::parked, ASGST_WALK_DURING_UNSAFE_STATES);
  *active = false;
  EXPECT_EQ(refused.trace.num_frames, ASGST_GC_ACTIVE);
  EXPECT_EQ(refused.trace.kind, ASGST_GC_TRACE);
  EXPECT_EQ(masked.trace.num_frames, ASGST_WRONG_KIND);
  EXPECT_GT(walked.trace.num_frames, 0) << walked.why();
}

// Runs at a safepoint, on the VM thread.
struct AtSafepoint {
  std::function<void()> walk;
  bool done = false;
};
jint JNICALL on_first_object(jlong, jlong, jlong*, jint, void* data) {
  auto* const at = static_cast<AtSafepoint*>(data);
  if (!at->done) at->walk();
  at->done = true;
  return JVMTI_VISIT_ABORT;
}

TEST_F(AsgstTest, AtASafepointNothingIsWalkedUnlessAsked) {
  start({ScenarioId::parked});
  jvmtiEnv* jvmti = nullptr;
  ASSERT_EQ(session().jvm().vm()->GetEnv(reinterpret_cast<void**>(&jvmti), JVMTI_VERSION_11),
            JNI_OK);
  jvmtiCapabilities wanted{};
  wanted.can_tag_objects = 1;
  ASSERT_EQ(jvmti->AddCapabilities(&wanted), JVMTI_ERROR_NONE);
  const jlong tid = gettid();
  Traced refused, walked;
  AtSafepoint at{[&] {
    refused = walk_thread(tid, nullptr, 0);
    walked = walk_thread(tid, nullptr, ASGST_WALK_DURING_UNSAFE_STATES);
  }};
  jvmtiHeapCallbacks callbacks{};
  callbacks.heap_iteration_callback = &on_first_object;
  ASSERT_EQ(jvmti->IterateThroughHeap(0, nullptr, &callbacks, &at), JVMTI_ERROR_NONE);
  ASSERT_TRUE(at.done);
  EXPECT_EQ(refused.trace.num_frames, ASGST_UNSAFE_STATE);
  // This thread has no Java frame; the walk took place.
  EXPECT_EQ(walked.trace.num_frames, ASGST_NO_JAVA_FRAME);
}

TEST_F(AsgstTest, WithoutClassLoadEventsThereAreNoMethodIds) {
  start({ScenarioId::parked});
  jvmtiEnv* const jvmti = session().jvm().jvmti();
  ASSERT_EQ(jvmti->SetEventNotificationMode(JVMTI_DISABLE, JVMTI_EVENT_CLASS_LOAD, nullptr),
            JVMTI_ERROR_NONE);
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(walk(ScenarioId::parked, 0).trace.num_frames, ASGST_NO_CLASS_LOAD);
}

TEST_F(AsgstTest, AFaultOfTheWalkIsContainedAndCounted) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  // The one thing a walk has to trust is where to write.
  void* const unwritable = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unwritable, MAP_FAILED);
  const jlong before = contained();
  const Traced traced = AsgstTest::traced(kEveryKind, 0, 16, [&](ASGST_CallTrace* trace) {
    trace->frames = static_cast<ASGST_CallFrame*>(unwritable);
    function<Function>("AsyncGetStackTrace")(trace, 16, victim(ScenarioId::parked).slot->context,
                                             0);
  });
  EXPECT_EQ(traced.trace.num_frames, ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before + 1);
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0) << "and the next walk is as ever";
  munmap(unwritable, 4096);
}

// Memory that cannot be read for a while: as if it had been freed, and given back.
class Unreadable {
 public:
  Unreadable(void* address, size_t size) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(address) / page * page;
    begin_ = reinterpret_cast<void*>(begin);
    size_ = reinterpret_cast<uintptr_t>(address) + size - begin;
    mprotect(begin_, size_, PROT_NONE);
  }
  ~Unreadable() { mprotect(begin_, size_, PROT_READ | PROT_WRITE); }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

 private:
  void* begin_;
  size_t size_;
};

// The thread whose stack sp is on may have ended meanwhile.
TEST_F(AsgstTest, AThreadThatIsGoneIsAContainedFault) {
  start({ScenarioId::parked});
  halt(ScenarioId::parked);
  ASSERT_FALSE(HasFatalFailure());
  const auto by_context = function<Function>("AsyncGetStackTrace");
  const auto by_frame = function<int (*)(void*, void*, void*, int, void (*)(void*, void*), void*)>(
      "ASGST_RunWithIteratorFromFrame");
  const Victim& gone = victim(ScenarioId::parked);
  ucontext_t* const context = gone.slot->context;
  const auto at = [&](Register reg) {
    return reinterpret_cast<void*>(get_register(*context, reg));
  };
  std::array<ASGST_CallFrame, 16> frames;
  ASGST_CallTrace trace = {};
  trace.frames = frames.data();
  const jlong before = contained();
  int from_frame = 0;
  {
    const Unreadable thread(gone.java_thread, gone.thread_copy.size());
    by_context(&trace, 16, context, 0);
    from_frame = by_frame(
        at(Register::sp), at(Register::fp), at(Register::pc), 0, [](void*, void*) {}, nullptr);
  }
  EXPECT_EQ(trace.num_frames, ASGST_CONTAINED_FAULT);
  EXPECT_EQ(from_frame, -23) << "ASGST_CONTAINED_FAULT of profile2.h";
  EXPECT_EQ(contained(), before + 2);
  EXPECT_GT(walk(ScenarioId::parked, 0).trace.num_frames, 0);
}

// Leaves what faults by longjmp, before or instead of the VM.
class FaultsThatLeave {
 public:
  using Handle = int (*)(int, siginfo_t*, void*, int);
  // `first`: asked before it leaves, may be null.
  explicit FaultsThatLeave(Handle first = nullptr) {
    first_ = first;
    struct sigaction action = {};
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
      if (first_ != nullptr && first_(signal, info, context, 0) != 0) return;
      siglongjmp(out_, 1);
    };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~FaultsThatLeave() { sigaction(SIGSEGV, &before_, nullptr); }
  FaultsThatLeave(const FaultsThatLeave&) = delete;
  FaultsThatLeave& operator=(const FaultsThatLeave&) = delete;

  // Whether the body was left. It must have nothing to destroy.
  template <typename Body>
  bool leaves(Body body) const {
    if (sigsetjmp(out_, 1) != 0) return true;
    body();
    return false;
  }

 private:
  static inline sigjmp_buf out_;
  static inline Handle first_ = nullptr;
  struct sigaction before_ = {};
};

class ProtectionTest : public AsgstTest {
 protected:
  void SetUp() override {
    start({ScenarioId::parked});
    halt(ScenarioId::parked);
    ASSERT_FALSE(HasFatalFailure());
    walker_ = function<Function>("AsyncGetStackTrace");
    unwritable_ = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(unwritable_, MAP_FAILED);
  }
  // Faults in a protected call.
  jint faulting_walk() {
    ASGST_CallTrace trace = {};
    trace.frames = static_cast<ASGST_CallFrame*>(unwritable_);
    walker_(&trace, 16, victim(ScenarioId::parked).slot->context, 0);
    return trace.num_frames;
  }
  bool leave_a_walk() {
    const FaultsThatLeave handler;
    return handler.leaves([this] { faulting_walk(); });
  }

  Function walker_ = nullptr;
  void* unwritable_ = nullptr;
};

// As a profiler does that recovers from faults itself.
TEST_F(ProtectionTest, WalksThatWereLeftTakeNobodysProtectionAway) {
  constexpr int kMoreThanThereIsRoomFor = 200;
  for (int i = 0; i < kMoreThanThereIsRoomFor; ++i) ASSERT_TRUE(leave_a_walk());
  const jlong before = contained();
  EXPECT_EQ(faulting_walk(), ASGST_CONTAINED_FAULT);
  EXPECT_EQ(contained(), before + 1);
}

// Where the frames of a walk that was left have been.
[[gnu::noinline]] void fault_over_old_frames() {
  std::array<volatile char, 65536> over;
  for (volatile char& each : over) each = 0;
  *reinterpret_cast<volatile int*>(uintptr_t{16}) = over[0];
}

TEST_F(ProtectionTest, AWalkThatWasLeftIsNotGoneOnWithAtALaterFault) {
  const auto vm = function<FaultsThatLeave::Handle>("JVM_handle_linux_signal");
  const jlong before = contained();
  ASSERT_TRUE(leave_a_walk());
  const FaultsThatLeave handler(vm);
  EXPECT_TRUE(handler.leaves(&fault_over_old_frames));
  EXPECT_EQ(contained(), before) << "the fault is no walk's";
}

}  // namespace
}  // namespace framestorm
