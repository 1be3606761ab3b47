#include "harness/victim/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace framestorm {
namespace {

using Frames = std::vector<std::string>;

// Whether `pattern` accepts the frames, and the reason when it does not.
testing::AssertionResult fits(const Frames& frames, std::string_view pattern,
                              bool truncated = false) {
  std::string why;
  if (matches_pattern(frames, pattern, truncated, &why)) {
    return testing::AssertionSuccess() << "matched";
  }
  EXPECT_FALSE(why.empty());
  return testing::AssertionFailure() << why;
}

Frames repeated(const std::string& frame, size_t times) { return Frames(times, frame); }

TEST(TracePattern, PlainTokensAreExactlyOneFrameEach) {
  EXPECT_TRUE(fits({"a/A.x", "a/A.y"}, "a/A.x a/A.y"));
  EXPECT_FALSE(fits({"a/A.x"}, "a/A.x a/A.y"));
  EXPECT_FALSE(fits({"a/A.y", "a/A.x"}, "a/A.x a/A.y"));
  EXPECT_FALSE(fits({"a/A.x", "a/A.x", "a/A.y"}, "a/A.x a/A.y"));
  EXPECT_FALSE(fits({"a/A.x", "a/A.y", "a/A.z"}, "a/A.x a/A.y"));
  EXPECT_FALSE(fits({}, "a/A.x"));
  EXPECT_TRUE(fits({}, ""));
}

TEST(TracePattern, NamesAreComparedWhole) {
  EXPECT_FALSE(fits({"a/A.spin"}, "a/A.spinInNative"));
  EXPECT_FALSE(fits({"a/A.spinInNative"}, "a/A.spin"));
  EXPECT_FALSE(fits({"aXA.spin"}, "a/A.spin"));
}

TEST(TracePattern, RepetitionsCountFrames) {
  EXPECT_TRUE(fits({"x", "r", "y"}, "x r+ y"));
  EXPECT_TRUE(fits({"x", "r", "r", "r", "y"}, "x r+ y"));
  EXPECT_FALSE(fits({"x", "y"}, "x r+ y"));
  EXPECT_TRUE(fits({"x", "y"}, "x r? y"));
  EXPECT_TRUE(fits({"x", "r", "y"}, "x r? y"));
  EXPECT_FALSE(fits({"x", "r", "r", "y"}, "x r? y"));
  EXPECT_TRUE(fits({"x", "y"}, "x r+? y"));
  EXPECT_TRUE(fits({"x", "r", "r", "y"}, "x r+? y"));
  EXPECT_FALSE(fits({"x", "r", "s", "y"}, "x r+? y"));
}

TEST(TracePattern, AmbiguousRepetitionsAreAllTried) {
  EXPECT_TRUE(fits({"r", "r", "r"}, "r+ r"));
  EXPECT_TRUE(fits({"r", "r"}, "r? r+? r r?"));
  EXPECT_FALSE(fits({"r"}, "r+ r"));
}

TEST(TracePattern, DotsAreAnyFrames) {
  EXPECT_TRUE(fits({"j/A.a", "j/B.b", "x"}, "... x"));
  EXPECT_TRUE(fits({"x"}, "... x"));
  EXPECT_TRUE(fits({"x", "j/A.a"}, "x ..."));
  EXPECT_FALSE(fits({"x", "j/A.a"}, "... x"));
}

TEST(TracePattern, GlobsAndAlternatives) {
  EXPECT_TRUE(fits({"a/L$$Lambda.0x7f/0x2.applyAsLong"}, "a/L$$Lambda*.applyAsLong"));
  EXPECT_FALSE(fits({"a/L$$Lambda.0x7f.other"}, "a/L$$Lambda*.applyAsLong"));
  EXPECT_TRUE(fits({"b/B.x", "a/A.x"}, "a/*|b/*+"));
  EXPECT_FALSE(fits({"b/B.x", "c/C.x"}, "a/*|b/*+"));
  EXPECT_TRUE(fits({"aab"}, "*ab"));
}

TEST(TracePattern, TruncatedTracesNeedOnlyBegin) {
  const Frames frames = {"x", "r", "r"};
  EXPECT_FALSE(fits(frames, "x r+ y"));
  EXPECT_TRUE(fits(frames, "x r+ y", true));
  EXPECT_FALSE(fits({"x", "z"}, "x r+ y", true));
}

TEST(TracePattern, SaysWhichFrameIsWrong) {
  std::string why;
  EXPECT_FALSE(matches_pattern(Frames{"x", "z"}, "x r? y", false, &why));
  EXPECT_EQ(why, "frame 1 is z, expected r or y");
  EXPECT_FALSE(matches_pattern(Frames{"x"}, "x r? y", false, &why));
  EXPECT_EQ(why, "the trace ends after 1 frames, expected r or y");
  EXPECT_FALSE(matches_pattern(Frames{"x", "y", "y"}, "x r? y", false, &why));
  EXPECT_EQ(why, "frame 2 is y, expected the end");
}

TEST(ScenarioTable, DescribesEveryScenarioOnce) {
  ASSERT_EQ(all_scenarios().size(), static_cast<size_t>(ScenarioId::count));
  std::set<std::string_view> names;
  for (const ScenarioInfo& info : all_scenarios()) {
    SCOPED_TRACE(info.name);
    EXPECT_EQ(&scenario_info(info.id), &info);
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_FALSE(info.description.empty());
    EXPECT_EQ(info.java, !info.trace.empty());
    EXPECT_TRUE(info.java || info.asgct_trace.empty());
    EXPECT_EQ(info.top == TopCode::nmethod || info.top == TopCode::stub, !info.top_name.empty());
    EXPECT_EQ(info.top == TopCode::nmethod, info.top_tier != 0);
    EXPECT_GE(info.asgct_percent, 0);
    EXPECT_LE(info.asgct_percent, 100);
    EXPECT_TRUE(info.asgct_percent == 100 || !info.note.empty()) << "say why";
  }
}

TEST(ScenarioTable, JavaScenariosRunOnVictims) {
  for (const ScenarioInfo& info : all_scenarios()) {
    if (info.java) {
      // Where frames are in the heap, a trace may end before it.
      const bool runs = info.trace.find("framestorm/Victim.run") != std::string_view::npos ||
                        info.thawed_trace.find("framestorm/Victim.run") != std::string_view::npos;
      EXPECT_TRUE(runs) << info.name;
    }
  }
}

// A scenario is a row and this file; threads that run no Java of ours have none.
TEST(ScenarioTable, EachScenarioInJavaHasItsClass) {
  for (const ScenarioInfo& info : all_scenarios()) {
    if (!info.java) continue;
    std::string file;
    for (size_t i = 0; i < info.name.size(); ++i) {
      const bool begins_word = i == 0 || info.name[i - 1] == '-';
      if (info.name[i] == '-') continue;
      file += begins_word ? static_cast<char>(std::toupper(info.name[i])) : info.name[i];
    }
    const std::filesystem::path java = FRAMESTORM_JAVA;
    const std::string folder =
        info.min_feature == 17 ? "common" : "jdk" + std::to_string(info.min_feature);
    EXPECT_TRUE(std::filesystem::exists(java / folder / "framestorm" / (file + ".java")))
        << info.name;
  }
}

Frames frames_of_c2_inlined() {
  return {"framestorm/C2Inlined.leaf",     "framestorm/C2Inlined.level2",
          "framestorm/C2Inlined.level1",   "framestorm/C2Inlined.root",
          "framestorm/C2Inlined.boundary", "framestorm/C2Inlined.run",
          "framestorm/Victim.run"};
}

TEST(ScenarioTable, AcceptsWhatTheScenarioRuns) {
  const ScenarioInfo& info = scenario_info(ScenarioId::c2_inlined);
  const Frames right = frames_of_c2_inlined();
  std::string why;
  EXPECT_TRUE(matches(right, info, traits_of(WalkerId::asgct), &why)) << why;

  for (size_t lost = 0; lost < right.size(); ++lost) {
    Frames wrong = right;
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(lost));
    EXPECT_FALSE(matches(wrong, info, traits_of(WalkerId::asgct), &why))
        << "without " << right[lost];
  }
  for (size_t swapped = 0; swapped + 1 < right.size(); ++swapped) {
    Frames wrong = right;
    std::swap(wrong[swapped], wrong[swapped + 1]);
    EXPECT_FALSE(matches(wrong, info, traits_of(WalkerId::asgct), &why))
        << "swapped " << right[swapped];
  }
  EXPECT_FALSE(matches(Frames{}, info, traits_of(WalkerId::asgct), &why));
  EXPECT_TRUE(matches(Frames(right.begin(), right.begin() + 3), info, traits_of(WalkerId::asgct),
                      &why, true))
      << why;
  EXPECT_FALSE(matches(Frames(right.begin(), right.begin() + 3), info, traits_of(WalkerId::asgct),
                       &why, false));
}

TEST(ScenarioTable, AcceptsAVictimStillRegistering) {
  const ScenarioInfo& info = scenario_info(ScenarioId::c1);
  Frames frames = {"framestorm/Harness.enter", "framestorm/Scenario.enter", "framestorm/C1.spin",
                   "framestorm/C1.middle",     "framestorm/C1.outer",       "framestorm/C1.run",
                   "framestorm/Victim.run"};
  std::string why;
  EXPECT_TRUE(matches(frames, info, traits_of(WalkerId::asgct), &why)) << why;
  Frames asking = frames;
  asking.insert(asking.begin(), "java/lang/Thread.currentThread");
  EXPECT_TRUE(matches(asking, info, traits_of(WalkerId::asgct), &why)) << why;
  std::rotate(frames.begin(), frames.begin() + 2, frames.begin() + 3);  // spin on top of them
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::asgct), &why));
}

TEST(ScenarioTable, AcceptsDeepRecursion) {
  const ScenarioInfo& info = scenario_info(ScenarioId::deep_stack);
  Frames frames = repeated("framestorm/DeepStack.recurse", 12'500);
  frames.insert(frames.begin(), "framestorm/DeepStack.spin");
  std::string why;
  EXPECT_TRUE(matches(frames, info, traits_of(WalkerId::asgct), &why, true)) << why;
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::asgct), &why, false));
  frames.insert(frames.end(), {"framestorm/DeepStack.run", "framestorm/Victim.run"});
  EXPECT_TRUE(matches(frames, info, traits_of(WalkerId::asgct), &why)) << why;
  frames[6'000] = "framestorm/DeepStack.spin";
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::asgct), &why));
  EXPECT_NE(why.find("frame 6000 "), std::string::npos) << why;
}

TEST(ScenarioTable, KnowsWhereAsyncGetCallTraceStops) {
  const ScenarioInfo& info = scenario_info(ScenarioId::deoptimized_caller);
  std::string why;
  EXPECT_TRUE(matches(
      Frames{"framestorm/DeoptimizedCaller.callee", "framestorm/DeoptimizedCaller.between",
             "framestorm/DeoptimizedCaller.inlinedCaller", "framestorm/DeoptimizedCaller.caller",
             "framestorm/DeoptimizedCaller.outermost", "framestorm/DeoptimizedCaller.run",
             "framestorm/Victim.run"},
      info, traits_of(WalkerId::asgct), &why))
      << why;
  EXPECT_TRUE(
      matches(Frames{"framestorm/DeoptimizedCaller.callee", "framestorm/DeoptimizedCaller.between"},
              info, traits_of(WalkerId::asgct), &why))
      << why;
  EXPECT_FALSE(matches(Frames{"framestorm/DeoptimizedCaller.callee"}, info,
                       traits_of(WalkerId::asgct), &why));
}

TEST(ScenarioTable, AVirtualThreadsTraceGoesOnIntoItsCarrierWhereTheWalkerDoes) {
  const ScenarioInfo& info = scenario_info(ScenarioId::virtual_fresh);
  Frames frames = {
      "framestorm/VirtualFresh.spin",        "framestorm/VirtualFresh.recurse",
      "framestorm/VirtualFresh.run",         "framestorm/Victim.run",
      "java/lang/VirtualThread.run",         "java/lang/VirtualThread$VThreadContinuation$1.run",
      "jdk/internal/vm/Continuation.enter0", "jdk/internal/vm/Continuation.enter"};
  EXPECT_TRUE(matches(frames, info, traits_of(kReferenceWalker), nullptr));
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::asgst), nullptr));
  frames.insert(
      frames.end(),
      {"jdk/internal/vm/Continuation.enterSpecial", "jdk/internal/vm/Continuation.run",
       "java/lang/VirtualThread.runContinuation", "java/util/concurrent/ForkJoinPool.runWorker"});
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::asgst), nullptr));
  frames.emplace_back("java/util/concurrent/ForkJoinWorkerThread.run");
  EXPECT_TRUE(matches(frames, info, traits_of(WalkerId::asgst), nullptr));
  std::string why;
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::jfr_trace), &why));
  EXPECT_EQ(why, "frame 9 is jdk/internal/vm/Continuation.run, of the carrier, expected the end");
  const Frames own(frames.begin(), frames.begin() + 9);
  EXPECT_TRUE(matches(own, info, traits_of(WalkerId::jfr_trace), &why)) << why;
  frames.erase(frames.begin() + 8);
  EXPECT_FALSE(matches(frames, info, traits_of(WalkerId::asgst), nullptr));
}

TEST(ScenarioTable, HowATraceDiffersIsSaidInWordsForAllScenarios) {
  const ScenarioInfo& info = scenario_info(ScenarioId::c2_inlined);
  const Frames right = frames_of_c2_inlined();
  const auto changed = [&](auto change) {
    Frames frames = right;
    change(frames);
    return difference(frames, info);
  };
  const std::string other = "a/B.c";
  EXPECT_EQ(difference(right, info), "is whole");
  EXPECT_EQ(changed([](Frames& f) { f.pop_back(); }), "ends early");
  EXPECT_EQ(changed([](Frames& f) { f.erase(f.begin(), f.begin() + 2); }),
            "lacks its innermost frames");
  EXPECT_EQ(changed([](Frames& f) { f.erase(f.begin() + 2, f.begin() + 4); }),
            "lacks frames further out");
  EXPECT_EQ(changed([&](Frames& f) { f.insert(f.begin(), other); }),
            "has frames above its innermost");
  EXPECT_EQ(changed([](Frames& f) { f.insert(f.begin(), f[0]); }),
            "has frames too many further out");
  EXPECT_EQ(changed([&](Frames& f) { f[0] = other; }), "begins with another frame");
  EXPECT_EQ(changed([&](Frames& f) { f[3] = other; }), "has other frames further out");
}

TEST(ScenarioTable, OnlyAsyncGetCallTraceMayStopThere) {
  const ScenarioInfo& info = scenario_info(ScenarioId::deoptimized_caller);
  const Frames stopped = {"framestorm/DeoptimizedCaller.callee",
                          "framestorm/DeoptimizedCaller.between"};
  std::string why;
  EXPECT_TRUE(matches(stopped, info, traits_of(WalkerId::asgct), &why)) << why;
  EXPECT_TRUE(matches(stopped, info, traits_of(WalkerId::plugin), &why)) << why;
  EXPECT_FALSE(matches(stopped, info, traits_of(WalkerId::asgst), &why));
  EXPECT_FALSE(matches(stopped, info, traits_of(WalkerId::gst), &why));
}

TEST(ScenarioTable, AnUnnamedNativeMethodStandsForOneFrame) {
  const ScenarioInfo& info = scenario_info(ScenarioId::native_method);
  const Frames whole = {std::string(kUnnamedNative), "framestorm/NativeMethod.call",
                        "framestorm/NativeMethod.run", "framestorm/Victim.run"};
  const auto is_right = [&](const Frames& frames) {
    return matches(frames, info, traits_of(WalkerId::asgct2_packed), nullptr);
  };
  EXPECT_TRUE(is_right(whole));
  EXPECT_FALSE(is_right(Frames(whole.begin() + 1, whole.end())));
  Frames two = whole;
  two.insert(two.begin() + 2, std::string(kUnnamedNative));
  EXPECT_FALSE(is_right(two));
}

TEST(ScenarioTable, FrozenFramesAreLeftOutByWalkersOfTheStack) {
  const ScenarioInfo& info = scenario_info(ScenarioId::virtual_remounted);
  const Frames thawed = {"framestorm/VirtualRemounted.yieldAndSpin",
                         "framestorm/VirtualRemounted.recurseInterpreted",
                         "jdk/internal/vm/Continuation.enterSpecial",
                         "jdk/internal/vm/Continuation.run",
                         "java/lang/VirtualThread.runContinuation",
                         "java/util/concurrent/ForkJoinPool.runWorker",
                         "java/util/concurrent/ForkJoinWorkerThread.run"};
  const Frames whole = {"framestorm/VirtualRemounted.yieldAndSpin",
                        "framestorm/VirtualRemounted.recurseInterpreted",
                        "framestorm/VirtualRemounted.run",
                        "framestorm/Victim.run",
                        "java/lang/VirtualThread.run",
                        "jdk/internal/vm/Continuation.enter"};
  std::string why;
  EXPECT_TRUE(matches(thawed, info, traits_of(WalkerId::asgst), &why)) << why;
  EXPECT_TRUE(matches(thawed, info, traits_of(WalkerId::asgct), &why)) << why;
  EXPECT_FALSE(matches(thawed, info, traits_of(WalkerId::gst), &why));
  EXPECT_TRUE(matches(whole, info, traits_of(WalkerId::gst), &why)) << why;
  EXPECT_FALSE(matches(whole, info, traits_of(WalkerId::asgst), &why))
      << "frames that are in the heap";
  // One that declares what it does, and may do either.
  WalkerTraits own = traits_of(WalkerId::asgst);
  own.may_see_frozen_frames = true;
  EXPECT_TRUE(matches(whole, info, own, &why)) << why;
  EXPECT_TRUE(matches(thawed, info, own, &why)) << why;
  const Frames stops(thawed.begin(), thawed.begin() + 2);
  const Frames stops_behind(thawed.begin(), thawed.begin() + 3);
  EXPECT_FALSE(matches(stops, info, own, &why));
  own.stops_at_continuations = true;
  EXPECT_TRUE(matches(stops, info, own, &why)) << why;
  EXPECT_TRUE(matches(stops_behind, info, own, &why)) << why;
  EXPECT_FALSE(matches(Frames(thawed.begin(), thawed.begin() + 4), info, own, &why));
  EXPECT_FALSE(matches(Frames(thawed.begin() + 1, thawed.begin() + 2), info, own, &why));
  EXPECT_FALSE(
      matches(Frames(thawed.begin(), thawed.end() - 1), info, traits_of(WalkerId::asgst), &why))
      << "without the carrier's first frame";
  EXPECT_FALSE(
      matches(Frames(thawed.begin() + 1, thawed.end()), info, traits_of(WalkerId::asgst), &why));
}

TEST(ScenarioTable, ScenariosWithoutJavaHaveNoFrames) {
  const ScenarioInfo& info = scenario_info(ScenarioId::native_attached);
  std::string why;
  EXPECT_TRUE(matches(Frames{}, info, traits_of(WalkerId::asgct), &why));
  EXPECT_FALSE(matches(Frames{"framestorm/Victim.run"}, info, traits_of(WalkerId::asgct), &why));
}

}  // namespace
}  // namespace framestorm
