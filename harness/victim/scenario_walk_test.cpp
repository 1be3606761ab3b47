// Each scenario on a live JVM: its victim is what the table says, walks of it are right, in both
// modes.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <set>

#include "harness/executor/fake_walker.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/oracles/walk_view.h"
#include "harness/victim/natives.h"
#include "harness/victim/scenario.h"

namespace framestorm {
namespace {

using jvm_test::clauses_of;
using jvm_test::explain;
using jvm_test::FakeWalk;
using jvm_test::FakeWalker;
using jvm_test::JvmTest;
using jvm_test::Walked;

// At least so many halts; where the table promises a share of the walks only, or a place that is
// not met at once, more.
constexpr int kHalts = 20;
constexpr int kMostHalts = 200;

// AsyncGetCallTrace's own wrong answer, see corpus/crashes: of a thread in Java that is halted in C
// code - a leaf call, an interpreted VM call's entry, HotSpot's signal handler for a poll - it
// loses frames. So it does of compiled code that has no frame yet, or no longer. Of C2's search in
// strings it takes a word that was pushed for the return address, and where there are other walkers
// they disagree.
bool is_known_defect(ScenarioId scenario, uint32_t thread_state, bool has_frame,
                     const std::vector<std::string>& clauses) {
  if (thread_state != kThreadInJava) return false;
  const std::string wrong = "contract:wrong-frames";
  if (!has_frame && clauses == std::vector{wrong}) return true;
  return scenario == ScenarioId::string_search &&
         std::ranges::find(clauses, wrong) != clauses.end() &&
         std::ranges::all_of(clauses, [&](const std::string& clause) {
           return clause == wrong || clause.starts_with("contract:disagrees-with-");
         });
}

// Of Java, at its halt. The interpreter's method entries make theirs somewhere on their way, those for
// functions of mathematics never, and bytecodes that return take it down. Where compiled code has
// none, its return address is on top of the stack, or the caller's frame pointer and then that.
bool has_frame(const Victim& victim, const CodeMap& code) {
  const CodeEntry* const entry = code.find(victim.pc);
  if (entry == nullptr || may_be_partly_there(*entry)) return false;
  if (entry->kind != CodeKind::nmethod) return true;
  const auto* const top = reinterpret_cast<const std::byte*>(victim.sp);
  const auto is_in_code = [&](size_t word) {
    return code.find(read_at<uintptr_t>(top, word * sizeof(uintptr_t))) != nullptr;
  };
  return !is_in_code(0) && !is_in_code(1);
}

// In compiled code, at its first instructions or its last ones.
bool is_between_frames(const Victim& victim, const CodeMap& code) {
  const CodeEntry* const entry = code.find(victim.pc);
  return entry != nullptr && entry->kind == CodeKind::nmethod && !has_frame(victim, code);
}

// What AsyncGetCallTrace does to the anchor that the VM's call into Java has saved, where the
// interpreter had called the VM: it stores the missing pc (corpus/crashes,
// entry-frame-walk-writes-call-wrapper). A victim may be met there while the VM looks for a native
// method that it calls for the first time.
bool only_completes_saved_anchor(const std::vector<Finding>& findings, const Victim& victim,
                                 const ThreadLayout& layout) {
  if (findings.size() != 1 || findings[0].clause != "victim-changed") return false;
  const auto word = [](uintptr_t place) { return *reinterpret_cast<const uintptr_t*>(place); };
  const uintptr_t anchor = victim.saved_anchor(layout);
  if (anchor == 0 || word(anchor) == 0) return false;
  const uintptr_t pc_at = anchor + layout.last_java_pc - layout.last_java_sp;
  const uintptr_t pc = word(word(anchor) - sizeof(uintptr_t));
  const uintptr_t first_byte =
      pc_at - victim.stack_copy_begin + static_cast<size_t>(std::countr_zero(pc)) / 8;
  return word(pc_at) == 0 &&
         findings[0].detail ==
             "the stack above sp differs from its halt at byte " + std::to_string(first_byte);
}

class ScenarioWalk : public JvmTest, public testing::WithParamInterface<ScenarioId> {
 protected:
  const ScenarioInfo& info() const { return scenario_info(GetParam()); }
  Victim& victim() { return JvmTest::victim(GetParam()); }
};

std::vector<ScenarioId> every_scenario() {
  std::vector<ScenarioId> all;
  for (const ScenarioInfo& info : all_scenarios()) all.push_back(info.id);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioWalk, testing::ValuesIn(every_scenario()),
                         [](const auto& scenario) {
                           std::string name(name_of(scenario.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(ScenarioWalk, IsWhatTheTableSays) {
  start({GetParam()});
  ASSERT_FALSE(HasFatalFailure());
  const auto missing = session().unavailable().find(GetParam());
  if (session().jvm().feature() < info().min_feature) {
    ASSERT_NE(missing, session().unavailable().end());
    EXPECT_EQ(missing->second, "needs JDK " + std::to_string(info().min_feature) +
                                   " or later, this is " +
                                   std::to_string(session().jvm().feature()));
    return;
  }
  ASSERT_EQ(missing, session().unavailable().end()) << missing->second;

  int walks = 0;
  int succeeded = 0;
  int in_top = 0;
  std::set<std::string> places;
  std::set<std::string> failures;
  const auto enough = [&] {
    // One walk in a hundred may meet the victim elsewhere.
    const bool any = succeeded > 0 || info().asgct_percent == 0;
    return in_top > 0 &&
           (!info().java || (any && 100 * succeeded >= std::min(info().asgct_percent, 99) * walks));
  };
  for (int i = 0; i < kHalts || (i < kMostHalts && !enough()); ++i) {
    halt(GetParam());
    ASSERT_FALSE(HasFatalFailure());
    in_top += in_top_code(GetParam()) ? 1 : 0;
    const std::string where = executor().addresses().describe(victim().pc, victim());
    places.insert(where);
    for (const Mode mode : {Mode::same_thread, Mode::separate_thread}) {
      Input input;
      input.scenario = GetParam();
      input.mode = mode;
      const Walked walked = walk(input);
      ASSERT_EQ(walked.outcome.status, Outcome::Status::walked);
      EXPECT_TRUE(walked.outcome.unmutated);
      ++walks;
      if (is_known_defect(GetParam(), victim().thread_state(session().jvm().layout()),
                          has_frame(victim(), session().jvm().code_map()),
                          clauses_of(walked.findings)) ||
          only_completes_saved_anchor(walked.findings, victim(), session().jvm().layout())) {
        continue;
      }
      EXPECT_TRUE(walked.findings.empty())
          << name_of(mode) << " at " << where << ": " << explain(walked);
      if (!walked.outcome.succeeded()) {
        // By design it refuses compiled code that has no frame yet, or no longer, in any scenario.
        if (is_between_frames(victim(), session().jvm().code_map())) {
          --walks;
        } else {
          failures.insert(where + " " + std::to_string(walked.outcome.result));
        }
        continue;
      }
      ++succeeded;
      std::string why;
      if (info().java) {
        EXPECT_TRUE(matches(walked.methods, info(), traits_of(input.walker), &why,
                            walked.outcome.result == 2048))
            << why;
      } else {
        ADD_FAILURE() << "frames of a thread without any: " << explain(walked);
      }
    }
  }
  EXPECT_TRUE(enough()) << succeeded << " of " << walks << " walks gave frames, "
                        << info().asgct_percent
                        << " % should: " << testing::PrintToString(failures);
  EXPECT_GT(in_top, 0) << "never in " << info().top_name << ", but in "
                       << testing::PrintToString(places);
}

TEST_P(ScenarioWalk, AgreesWithGetStackTrace) {
  start({GetParam()});
  ASSERT_FALSE(HasFatalFailure());
  // GetStackTrace knows nothing of threads without Java frames; of arraycopy and digest
  // AsyncGetCallTrace gives nothing, elsewhere it stops early by design; and where frames come
  // and go, the victim's stack is another by the time GetStackTrace looks.
  const bool moves =
      GetParam() == ScenarioId::exception_unwind || GetParam() == ScenarioId::stack_overflow ||
      GetParam() == ScenarioId::adapters || GetParam() == ScenarioId::virtual_cycling ||
      GetParam() == ScenarioId::math_stubs || GetParam() == ScenarioId::interpreted_calls ||
      GetParam() == ScenarioId::compiled_calls || GetParam() == ScenarioId::c1_monitor;
  if (!info().java || info().asgct_percent == 0 || !info().asgct_trace.empty() || moves ||
      session().jvm().feature() < info().min_feature) {
    Walker* gst = executor().walker(WalkerId::gst);
    ASSERT_NE(gst, nullptr);
    if (info().java && session().jvm().feature() >= info().min_feature) {
      // The reference alone still shows the scenario.
      session().victims().resume(GetParam());
      std::vector<Frame> frames;
      ASSERT_GT(session().walk_running(gst, GetParam(), &frames), 0);
      std::vector<std::string> methods;
      for (const auto& frame : executor().name_frames(frames)) methods.push_back(frame.method);
      std::string why;
      EXPECT_TRUE(matches_pattern(methods, info().trace, false, &why)) << why;
    }
    return;
  }
  int compared = 0;
  for (int i = 0; i < kMostHalts && compared < 5; ++i) {
    halt(GetParam());
    ASSERT_FALSE(HasFatalFailure());
    const std::string difference = session().compare_with_gst(GetParam());
    if (difference == "the walk gave no frames") continue;
    EXPECT_EQ(difference, "");
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

int walked_by;

TEST_P(ScenarioWalk, IsWalkedByTheThreadOfTheMode) {
  start({GetParam()});
  ASSERT_FALSE(HasFatalFailure());
  if (session().jvm().feature() < info().min_feature) return;
  executor().add_walker(std::make_unique<FakeWalker>(
      executor().walker(WalkerId::asgct), [](const FakeWalk&) -> int32_t {
        walked_by = static_cast<int>(syscall(SYS_gettid));
        return -1;
      }));
  halt(GetParam());
  ASSERT_FALSE(HasFatalFailure());
  Input input;
  input.scenario = GetParam();
  input.walker = WalkerId::plugin;
  input.mode = Mode::same_thread;
  walk(input);
  EXPECT_EQ(walked_by, victim().tid);
  input.mode = Mode::separate_thread;
  walk(input);
  EXPECT_EQ(walked_by, static_cast<int>(syscall(SYS_gettid)));
}

// Stepped, a victim takes long from its registering to the call that brings it to its point.
TEST_F(JvmTest, AVictimThatIsStartedHasCalledTheFunctionThatSpins) {
  start({ScenarioId::parked});
  ASSERT_FALSE(HasFatalFailure());
  natives::set_stepping(
      [](JNIEnv*) {
        World::get().step_self({.observe = [](ucontext_t*, bool) { return StepAnswer::go_on; }});
      },
      nullptr);
  for (const ScenarioId scenario :
       {ScenarioId::native_method, ScenarioId::jni_sandwich, ScenarioId::native_untabled,
        ScenarioId::native_no_return, ScenarioId::ffi_downcall}) {
    if (session().jvm().feature() < scenario_info(scenario).min_feature) continue;
    std::string reason;
    EXPECT_TRUE(session().victims().start(scenario, &reason)) << reason;
    EXPECT_TRUE(natives::is_spinning(scenario)) << name_of(scenario);
    World::get().end_step(natives::registration(scenario).tid);
  }
  natives::set_stepping(nullptr, nullptr);
}

// C2's code relies on which classes there are.
TEST_F(JvmTest, ADigestIsInItsStubBesideCryptoStubs) {
  start({ScenarioId::digest, ScenarioId::crypto_stubs});
  ASSERT_FALSE(HasFatalFailure());
  int in_stub = 0;
  for (int i = 0; i < kHalts; ++i) {
    halt(ScenarioId::digest);
    ASSERT_FALSE(HasFatalFailure());
    in_stub += in_top_code(ScenarioId::digest) ? 1 : 0;
  }
  EXPECT_GE(in_stub, kHalts / 2);
}

// Deep frames are still to be processed then, as in a program that has run for a while. Without this
// nothing collects: victims allocate little.
TEST_F(JvmTest, ACollectorThatLeavesFramesToThreadsHasCollected) {
  start({ScenarioId::parked}, {}, {"-XX:+UseZGC"});
  ASSERT_FALSE(HasFatalFailure());
  const VmStructs& structs = session().jvm().structs();
  const void* const heap =
      read_at<const void*>(structs.static_address("Universe", "_collectedHeap"));
  const size_t collections = structs.required_offset("CollectedHeap", "_total_collections");
  EXPECT_GT(read_at<uint32_t>(heap, collections), 0u);
}

// HotSpot tells of compiled methods in their order, some time later. Without waiting for the last one, a session
// in a hundred begins before all of them are told.
TEST_F(JvmTest, BeginsWhenAllCompiledCodeIsTold) {
  start({ScenarioId::c1});
  ASSERT_FALSE(HasFatalFailure());
  for (const char* const name : {"C1.outer", "C1.middle", "C1.spin", "Compiler.last"}) {
    EXPECT_NE(entry_of(CodeKind::nmethod, std::string("framestorm/") + name), 0u) << name;
  }
}

// HotSpot chooses the serial collector where it has one processor.
TEST_F(JvmTest, AProcessThatIsKeptToOneCoreHasGcWorkers) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  start({ScenarioId::gc_thread});
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(session().unavailable(), (std::map<ScenarioId, std::string>{}));
}

}  // namespace
}  // namespace framestorm
