// Every oracle against a walker with the one defect it is there for, on a real halted victim, and
// all of them against walkers without one.
#include "harness/oracles/oracle.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness/guard/vm_error.h"
#include "harness/oracles/oracle_fixture.h"

namespace framestorm::oracle_test {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::FakeFrame;
using jvm_test::Walked;

// Volatile, so that the compiler keeps what the wrong walkers do.
void* volatile block;
int* volatile nowhere;
volatile uint64_t turns;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int calls;

// As libjvm's report functions, which a failing assert calls.
void report_as_hotspot(const char* file, int line, const char* condition, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vm_error::on_error(file, line, condition, format, values);
  va_end(values);
}

const std::array kDefects = {
    Defect{"Fault", [](const FakeWalk&) -> int32_t { return *nowhere; }, {"fault:"}},
    Defect{"Hang",
           [](const FakeWalk&) -> int32_t {
             for (;;) turns = turns + 1;
           },
           {"hang:"}},
    Defect{"Abort", [](const FakeWalk&) -> int32_t { abort(); }, {"terminal_call:abort"}},
    Defect{"Prints",
           [](const FakeWalk& walk) -> int32_t {
             printf("depth %d\n", walk.depth);
             return walk.right();
           },
           {"terminal_call:printf"}},
    Defect{"FailsACheck",
           [](const FakeWalk& walk) -> int32_t {
             report_as_hotspot("frame.cpp", 7, "assert(depth > 0) failed", "depth %d", walk.depth);
             return walk.right();
           },
           {"vm_error:assert(depth > 0) failed (frame.cpp)"}},
    Defect{"WritesPastFrames",
           [](const FakeWalk& walk) -> int32_t {
             walk.frames[walk.depth].bci = 1;
             return walk.right();
           },
           {"contract:writes-past-frames"}},
    Defect{"WritesBeforeFrames",
           [](const FakeWalk& walk) -> int32_t {
             walk.frames[-1].bci = 1;
             return walk.right();
           },
           {"contract:writes-before-frames"}},
    Defect{"ChangesTheContext",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             set_register(walk.context, Register::r5, 1);
             return count;
           },
           {"contract:context-changed"}},
    Defect{"ChangesTheStack",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             ++*stack_word(walk, 16);
             return count;
           },
           {"contract:victim-changed"}},
    Defect{"ChangesTheJavaThread",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             auto* thread = static_cast<std::byte*>(walk.target->java_thread);
             const size_t state = Jvm::get().layout().last_java_sp;
             thread[state] ^= std::byte{1};
             return count;
           },
           {"contract:victim-changed"}},
    Defect{"ChangesErrno",
           [](const FakeWalk& walk) -> int32_t {
             errno = EINTR;
             return walk.right();
           },
           {"contract:errno-changed"}},
    Defect{"ChangesTheSignalMask",
           [](const FakeWalk& walk) -> int32_t {
             // Not through libc, which the interposer would see and the guard take back.
             const uint64_t mask = uint64_t{1} << (SIGUSR2 - 1);
             syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, nullptr, sizeof mask);
             return walk.right();
           },
           {"contract:signal-mask-changed"}},
    Defect{"BlocksASamplingSignal",  // which no handler of the harness has blocked already
           [](const FakeWalk& walk) -> int32_t {
             const uint64_t mask = uint64_t{1} << (SIGPROF - 1);
             syscall(SYS_rt_sigprocmask, SIG_BLOCK, &mask, nullptr, sizeof mask);
             return walk.right();
           },
           {"contract:signal-mask-changed"}},
    Defect{"BlocksAndRestores",
           [](const FakeWalk& walk) -> int32_t {
             sigset_t set;
             sigset_t before;
             sigemptyset(&set);
             sigaddset(&set, SIGPROF);
             pthread_sigmask(SIG_BLOCK, &set, &before);
             const int32_t count = walk.right();
             pthread_sigmask(SIG_SETMASK, &before, nullptr);
             return count;
           },
           {}},
    Defect{"LeavesAMaskByPthreadSigmask",
           [](const FakeWalk& walk) -> int32_t {
             sigset_t set;
             sigemptyset(&set);
             sigaddset(&set, SIGUSR2);
             pthread_sigmask(SIG_BLOCK, &set, nullptr);
             return walk.right();
           },
           {"contract:signal-mask-changed"}},
    Defect{"Allocates",
           [](const FakeWalk& walk) -> int32_t {
             block = malloc(100);
             free(block);
             return walk.right();
           },
           {"unsafe_call:free", "unsafe_call:malloc"}},
    Defect{"Locks",
           [](const FakeWalk& walk) -> int32_t {
             pthread_mutex_lock(&mutex);
             pthread_mutex_unlock(&mutex);
             return walk.right();
           },
           {"unsafe_call:pthread_mutex_lock", "unsafe_call:pthread_mutex_unlock"}},
    Defect{"CountsMoreThanDepth",
           [](const FakeWalk& walk) -> int32_t {
             walk.right();
             return walk.depth + 1;
           },
           {"contract:count-exceeds-depth"}},
    Defect{"UndocumentedError",
           [](const FakeWalk&) -> int32_t { return -11; },
           {"contract:undocumented-error"}},
    Defect{"ErrorOfAnotherState",  // unknown_not_Java of a thread in Java
           [](const FakeWalk&) -> int32_t { return -3; },
           {"contract:error-disagrees-with-state"}},
    Defect{"UnknownMethod",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 1) walk.frames[1].method = reinterpret_cast<jmethodID>(&mutex);
             return count;
           },
           {"contract:method-unresolved", "contract:wrong-frames"}},
    Defect{"BciBeyondTheMethod",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 0) walk.frames[0].bci = 60'000;
             return count;
           },
           {"contract:bci-out-of-range"}},
    Defect{"BciBelowTheLowest",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 0) walk.frames[0].bci = -4;
             return count;
           },
           {"contract:bci-out-of-range"}},
    Defect{"WrongBciOfACaller",  // in range
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 1) walk.frames[1].bci = walk.frames[1].bci == 0 ? 1 : 0;
             return count;
           },
           {"contract:caller-not-at-a-call", "contract:disagrees-with-asgct"}},
    Defect{"SpStandsStill",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 2) walk.frames[2].sp = walk.frames[1].sp;
             return count;
           },
           {"contract:sp-not-advancing"}},
    Defect{"SpStandsStillAtAJavaFrame",  // which has its return address at least
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 1) walk.frames[1].sp = walk.frames[0].sp;
             return count;
           },
           {"contract:sp-not-advancing"}},
    Defect{"OtherFramesForOtherDepths",  // the outermost instead of the innermost
           [](const FakeWalk& walk) -> int32_t {
             static std::array<FakeFrame, FakeWalk::kCapacity> all;
             const int32_t count = walk.right(all.data(), FakeWalk::kCapacity);
             const int32_t given = std::min(count, walk.depth);
             std::copy_n(all.data() + (count - given), given, walk.frames);
             return given;
           },
           {"contract:depth-changes-frames"}},
    Defect{"RefusesSmallDepths",
           [](const FakeWalk& walk) -> int32_t { return walk.depth < 10 ? 1 : walk.right(); },
           {"contract:depth-changes-result"}},
    Defect{"ChangesItsCount",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             return walk.depth < 100 || count < 1 ? count : count - (++calls & 1);
           },
           {"contract:not-deterministic", "contract:wrong-frames"}},
    Defect{"ChangesItsFrames",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (walk.depth >= 100 && count > 0) walk.frames[count - 1].sp += ++calls & 1;
             return count;
           },
           {"contract:not-deterministic"}},
    Defect{"ReadsItsStack",
           [](const FakeWalk& walk) -> int32_t {
             uint32_t never_written[64];
             asm volatile("" : "=m"(never_written));
             const bool is_set = never_written[32] != 0;
             const int32_t count = walk.right();
             return is_set ? count - 1 : count;
           },
           {"contract:reads-stale-stack"}},
    Defect{"ReturnsOnlyOnce",
           [](const FakeWalk& walk) -> int32_t {
             return walk.depth >= 100 && (++calls & 1) == 0 ? *nowhere : walk.right();
           },
           {"fault:"}},
    Defect{"LeavesOutAFrame",
           [](const FakeWalk& walk) -> int32_t {
             static std::array<FakeFrame, FakeWalk::kCapacity> all;
             const int32_t count = walk.right(all.data(), FakeWalk::kCapacity);
             const int32_t given = std::min(count - 1, walk.depth);
             for (int32_t i = 0; i < given; ++i)
               walk.frames[i] = all[static_cast<size_t>(i == 0 ? 0 : i + 1)];
             return given;
           },
           {"contract:wrong-frames"}},
    Defect{"SwapsFrames",
           [](const FakeWalk& walk) -> int32_t {
             const int32_t count = walk.right();
             if (count > 1) {
               std::swap(walk.frames[0].method, walk.frames[1].method);
               walk.frames[0].bci = walk.frames[1].bci = 0;
             }
             return count;
           },
           {"contract:wrong-frames"}},
};

class EachDefect : public OracleTest, public testing::WithParamInterface<Defect> {};

INSTANTIATE_TEST_SUITE_P(Walkers, EachDefect, testing::ValuesIn(kDefects),
                         [](const auto& defect) { return defect.param.name; });

TEST_P(EachDefect, IsReported) {
  start(GetParam().walk);
  ASSERT_FALSE(HasFatalFailure());
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    halt_in_java(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    calls = 0;
    const Walked walked = walk(input(mode));
    EXPECT_EQ(walked.outcome.status, Outcome::Status::walked);
    EXPECT_EQ(clauses_of(walked.findings), GetParam().expected)
        << name_of(mode) << ": " << explain(walked);
    std::string difference;
    EXPECT_TRUE(session().victims().verify(victim(ScenarioId::c1), false, &difference))
        << "the victim was not put right: " << difference;
    for (const Finding& finding : walked.findings) {
      EXPECT_FALSE(finding.detail.empty());
      EXPECT_EQ(finding.input, input(mode));
    }
    session().release_world();
  }
}

// -------------------------------------------------------------------------------------------------

// As a fuzz run judges: a mask that a raw system call left is seen in each walk, and put back.
TEST_F(OracleTest, AChangedMaskIsTheWalksThatChangedIt) {
  static bool changes;
  static uint64_t seen;
  start([](const FakeWalk& walk) -> int32_t {
    const uint64_t mask = uint64_t{1} << (SIGUSR2 - 1);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, changes ? &mask : nullptr, &seen, sizeof mask);
    return walk.right();
  });
  ASSERT_FALSE(HasFatalFailure());
  executor().set_rigour(Rigour::per_walk);
  for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
    halt_in_java(ScenarioId::c1);
    ASSERT_FALSE(HasFatalFailure());
    for (uint32_t i = 0; i < 2 * Executor::kCostlyShare; ++i) {
      changes = true;
      const Walked wrong = walk(input(mode));
      EXPECT_EQ(clauses_of(wrong.findings),
                std::vector<std::string>{"contract:signal-mask-changed"})
          << i << ": " << explain(wrong);
      changes = false;
      EXPECT_EQ(clauses_of(walk(input(mode)).findings), std::vector<std::string>());
      EXPECT_EQ(seen >> (SIGUSR2 - 1) & 1U, 0U) << "the mask was not put back";
    }
    session().release_world();
  }
}

// By instructions of libjvm: a table of handles is neither the walk's nor its thread's.
TEST_F(OracleTest, AWriteToWhatTheVmHasAllocatedIsReported) {
  static JNIEnv* env;
  static bool writes;
  start([](const FakeWalk& walk) -> int32_t {
    if (writes) env->DeleteLocalRef(env->NewLocalRef(walk.target->thread));
    return walk.right();
  });
  ASSERT_FALSE(HasFatalFailure());
  env = session().jvm().env();
  executor().watch_writes(WriteWatching::Pace::each_walk);
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const auto reported = [&] {
    return std::ranges::count(clauses_of(walk(input(Mode::separate_thread)).findings),
                              "contract:writes-to-the-vm");
  };
  writes = false;
  EXPECT_EQ(reported(), 0);
  writes = true;
  EXPECT_GE(reported(), 1);
}

// The next walk would wait for it, and be blamed.
TEST_F(OracleTest, ALockThatAWalkKeepsIsItsFindingAndEndsTheUseOfItsProcess) {
  start([](const FakeWalk& walk) -> int32_t {
    pthread_mutex_lock(&mutex);
    return walk.right();
  });
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  const Walked walked = walk(input(Mode::same_thread));
  EXPECT_EQ(clauses_of(walked.findings),
            (std::vector<std::string>{"contract:lock-held", "unsafe_call:pthread_mutex_lock"}))
      << explain(walked);
  EXPECT_TRUE(walked.outcome.not_reusable);
  for (const Finding& finding : walked.findings) {
    EXPECT_GT(finding.fault.stack_size, 0U) << "who took it";
    EXPECT_EQ(finding.input, input(Mode::same_thread));
  }
}

TEST_F(OracleTest, ARightWalkerIsNotReported) {
  const std::vector<ScenarioId> scenarios = {ScenarioId::interpreted_recursion, ScenarioId::c1,
                                             ScenarioId::c2_inlined, ScenarioId::native_method,
                                             ScenarioId::monitor_blocked};
  start([](const FakeWalk& walk) { return walk.right(); }, scenarios);
  ASSERT_FALSE(HasFatalFailure());
  for (const ScenarioId scenario : scenarios) {
    halt_where_it_mostly_is(scenario);
    ASSERT_FALSE(HasFatalFailure());
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      for (const DepthKind depth : {DepthKind::normal, DepthKind::one, DepthKind::exact,
                                    DepthKind::exact_minus_1, DepthKind::exact_plus_1}) {
        Input plain = input(mode, scenario);
        plain.call.depth = depth;
        const Walked walked = walk(plain);
        EXPECT_TRUE(walked.findings.empty())
            << name_of(scenario) << " " << name_of(depth) << ": " << explain(walked);
        EXPECT_TRUE(walked.outcome.succeeded());
      }
    }
  }
}

// One wrong trace has another cause in another kind of code, and a bucket of its own.
TEST_F(OracleTest, AWrongTraceSaysWhatItsVictimIsIn) {
  struct In {
    ScenarioId scenario;
    const char* place;
  };
  constexpr In kVictims[] = {{ScenarioId::c1, "compiled code: "},
                             {ScenarioId::interpreted_recursion, "interpreter"},
                             {ScenarioId::native_method, "native code: "}};
  start(
      [](const FakeWalk& walk) -> int32_t {
        walk.right();
        return walk.right(walk.frames, 1);
      },
      {ScenarioId::c1, ScenarioId::interpreted_recursion, ScenarioId::native_method});
  ASSERT_FALSE(HasFatalFailure());
  for (const In& one : kVictims) {
    halt_where_it_mostly_is(one.scenario);
    ASSERT_FALSE(HasFatalFailure());
    std::vector<std::string> details;
    for (const Finding& finding : walk(input(Mode::same_thread, one.scenario)).findings) {
      if (finding.clause == "wrong-frames") details.push_back(finding.detail);
    }
    ASSERT_EQ(details.size(), 1U) << name_of(one.scenario);
    EXPECT_TRUE(details.front().starts_with(one.place)) << details.front();
  }
}

int32_t asserts_its_caller(const FakeWalk&) {
  report_as_hotspot("forte.cpp", 7,
                    "assert(thread == JavaThread::thread_from_jni_environment(trace->env_id)) "
                    "failed",
                    "must be called by the current interrupted thread");
  return 0;
}

TEST_F(OracleTest, AnAssertionAgainstAForeignEnvIsTheCallersMistake) {
  start(&asserts_its_caller);
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input foreign = input(Mode::separate_thread);
  EXPECT_EQ(walk(foreign).findings.size(), 1U);
  foreign.call.env = EnvArg::other_victim;
  EXPECT_EQ(clauses_of(walk(foreign).findings), std::vector<std::string>());
}

// What it was in the midst of is not known: the process is not to be believed any more.
TEST_F(OracleTest, AnAbandonedWalkThatHadCalledWhatItMustNotEndsTheUseOfItsProcess) {
  start([](const FakeWalk& walk) -> int32_t {
    if (walk.depth > 0) {
      block = malloc(100);
      free(block);
    }
    return *nowhere;
  });
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input faults = input(Mode::separate_thread);
  faults.call.depth = DepthKind::zero;
  EXPECT_FALSE(walk(faults).outcome.not_reusable);
  faults.call.depth = DepthKind::normal;
  EXPECT_TRUE(walk(faults).outcome.not_reusable);
}

TEST_F(OracleTest, AMutatedWordThatTheWalkChangedIsReported) {
  start([](const FakeWalk& walk) -> int32_t {
    ++*stack_word(walk, 0);
    return -5;
  });
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input mutated = input(Mode::separate_thread);
  mutated.mutations.resize(1);
  mutated.mutations[0].kind = MutationKind::set_stack_word;
  mutated.mutations[0].value.kind = ValueKind::unmapped;
  const Walked walked = walk(mutated);
  EXPECT_EQ(walked.outcome.unresolved, 0U);
  EXPECT_EQ(clauses_of(walked.findings), std::vector<std::string>{"contract:victim-changed"})
      << explain(walked);
}

// As a destructor that a walk ran on the live thread: its memory comes back from the copy, what it
// freed does not.
TEST_F(OracleTest, AWalkThatFreesAndChangesItsVictimEndsTheUseOfItsProcess) {
  start([](const FakeWalk& walk) -> int32_t {
    if (walk.depth == 0) {
      block = malloc(100);
      free(block);
    }
    ++*stack_word(walk, 0);
    return -5;
  });
  ASSERT_FALSE(HasFatalFailure());
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input changes = input(Mode::separate_thread);
  const Walked changed = walk(changes);
  EXPECT_EQ(clauses_of(changed.findings), std::vector<std::string>{"contract:victim-changed"});
  EXPECT_FALSE(changed.outcome.not_reusable);
  changes.call.depth = DepthKind::zero;
  EXPECT_TRUE(walk(changes).outcome.not_reusable);
}

TEST_F(OracleTest, CostlyOraclesLookAtAShareOfTheWalks) {
  const auto* const defect = std::find_if(kDefects.begin(), kDefects.end(), [](const Defect& each) {
    return std::string_view(each.name) == "ChangesItsCount";
  });
  ASSERT_NE(defect, kDefects.end());
  start(defect->walk);
  ASSERT_FALSE(HasFatalFailure());
  executor().set_rigour(Rigour::per_walk);
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  Input mutated = input(Mode::same_thread);
  mutated.mutations.resize(1);  // the truth oracle does not look at it
  uint32_t found = 0;
  for (uint32_t i = 0; i < 4 * Executor::kCostlyShare; ++i) {
    found += walk(mutated).findings.empty() ? 0 : 1;
  }
  EXPECT_EQ(found, 4U);
}

TEST_F(OracleTest, BareWalksAreNotJudged) {
  start([](const FakeWalk&) -> int32_t {
    errno = EINTR;
    return -11;
  });
  ASSERT_FALSE(HasFatalFailure());
  executor().set_rigour(Rigour::bare);
  halt_in_java(ScenarioId::c1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_TRUE(walk(input(Mode::same_thread)).findings.empty());
}

}  // namespace
}  // namespace framestorm::oracle_test
