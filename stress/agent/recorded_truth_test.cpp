// Recordings whose verdicts are known.
#include "stress/agent/recorded_truth.h"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace framestorm::stress {
namespace {

using nlohmann::json;

// main calls outer calls inner. Handlers are 100 us apart and take 10 us.
constexpr int kHandlers = 50;
constexpr int64_t kPeriodNs = 100'000;
constexpr int64_t kTakesNs = 10'000;

std::string shadows() {
  std::string text =
      "stack\t0\t2 1 0 \n"
      "method\t0\t-1\t1\tT.main\t()V\t7:outer \n"
      "method\t1\t3\t1\tT.outer\t()V\t7:inner \n"
      "method\t2\t-1\t1\tT.inner\t()V\t\n"
      "name\t0\tT.outer()V\n"
      "name\t1\tT.inner()V\n"
      "code\t0\t0\t0@9 \t1@3 0@7 \n"
      "lost\t0\n";
  for (int64_t i = 0; i < kHandlers; ++i) {
    const int64_t begin = i * kPeriodNs;
    text += "handler\t9\t1\t1\t3\t0\t" + std::to_string(begin) + "\t" +
            std::to_string(begin + kTakesNs) + "\t0\tc2\tc2\t0\n";
  }
  return text;
}

constexpr std::string_view kInner = "\tT.inner()V@3";
constexpr std::string_view kOuter = "\tT.outer()V@7";
constexpr std::string_view kMain = "\tT.main()V@7";

// One trace, of a sample of each handler, timed by a clock that is `ahead`.
std::string recorded(const std::string& frames, int64_t ahead = 0, int64_t every = kPeriodNs) {
  std::string text = "trace\t0\t0" + frames + "\n";
  for (int64_t i = 0; i < kHandlers; ++i) {
    text += "sample\t9\t1\t" + std::to_string(i * every + kTakesNs / 2 + ahead) + "\t0\n";
  }
  return text;
}

json judge(const std::string& noted, const std::string& traces) {
  std::istringstream first(noted);
  std::istringstream second(traces);
  return judge_recorded(first, second, "own");
}

json figures(const std::string& noted, const std::string& traces) {
  return judge(noted, traces)["truth"]["walkers"]["own"];
}

const std::string kRight = std::string(kInner) + std::string(kOuter) + std::string(kMain);

TEST(RecordedTruthTest, WhatTheThreadRanIsRight) {
  const json found = figures(shadows(), recorded(kRight));
  EXPECT_EQ(found["judged"], kHandlers);
  EXPECT_EQ(found["wrong"], 0);
  EXPECT_EQ(found["verdicts"]["right"], kHandlers);
  EXPECT_EQ(figures(shadows(), recorded("\t-" + kRight))["verdicts"]["right"], kHandlers);
}

TEST(RecordedTruthTest, EachWayToBeWrongHasItsNameWithBothStacks) {
  const auto verdict = [](const std::string& frames, const char* name) {
    EXPECT_EQ(figures(shadows(), recorded(frames))["verdicts"][name], kHandlers) << name;
  };
  verdict(std::string(kInner) + std::string(kMain), "short");
  verdict(std::string(kInner) + std::string(kOuter), "short");
  verdict(kRight + std::string(kMain), "too-deep");
  verdict(std::string(kInner) + std::string(kMain) + std::string(kMain), "wrong-method");
  verdict(std::string(kInner) + "\tT.outer()V@8" + std::string(kMain), "wrong-bci");
  // Before its push, as a profiler says that does not know where.
  verdict(std::string(kInner) + "\tT.outer()V@0" + std::string(kMain), "wrong-bci");
  verdict("\t-", "refused");
  // One frame alone may be in its push or pop.
  const std::string two = std::string(kInner) + std::string(kInner);
  EXPECT_EQ(figures(shadows(), recorded(two + kRight))["more_on_top"], kHandlers);
  EXPECT_EQ(figures(shadows(), recorded(kRight + std::string(kMain)))["more_on_top"], 0);
  const json example =
      judge(shadows(), recorded(std::string(kInner) + std::string(kMain)))["examples"][0];
  EXPECT_EQ(example["verdict"], "short");
  EXPECT_EQ(example["count"], kHandlers);
  EXPECT_EQ(example["why"],
            "short: instrumented frame 1 is T.main, the thread's own is T.outer, in c2");
  EXPECT_EQ(example["frames"].size(), 2);
}

// outer has not pushed yet, or has popped; what is above it is native code or the VM.
TEST(RecordedTruthTest, TheInnermostFrameMayBeInItsPushBelowOthersThatAreNotJava) {
  std::string noted = shadows();
  noted.replace(0, noted.find('\n'), "stack\t0\t0 ");
  for (const char* above : {"", "\t-", "\t-\t-"}) {
    for (const char* outer : {"\tT.outer()V@0", "\tT.outer()V@9"}) {
      const json found = figures(noted, recorded(std::string(above) + outer + std::string(kMain)));
      EXPECT_EQ(found["verdicts"]["in-transition"], kHandlers) << above << outer << found.dump();
    }
  }
}

TEST(RecordedTruthTest, WhatIsInlinedElsewhereInTheCodeIsToldApart) {
  const auto other = [](const std::string& frames) {
    return figures(shadows(), recorded(frames))["verdicts"]["other-inlining"];
  };
  EXPECT_EQ(other("\tT.outer()V@9" + std::string(kMain)), kHandlers);
  // Frames that the code has at none of its places, and callers that are not the thread's.
  EXPECT_EQ(other("\tT.outer()V@8" + std::string(kMain)), 0);
  EXPECT_EQ(other("\tT.outer()V@9"), 0);
}

// JVMTI says T.0x1f of a hidden class, JFR T/0x1f, and a symbol in the JVM is T+0x1f.
TEST(RecordedTruthTest, AHiddenClassIsTheSameByEachOfItsNames) {
  std::string noted = shadows();
  noted.replace(noted.find("T.outer()V\n"), 10, "T$$Lambda.0x1f.apply()V");
  noted.replace(noted.find("0@9 \t"), 5, "0@9 \t2@4 0@9 \t");
  noted.insert(noted.find("code\t"), "name\t2\tT.outer()V\n");
  noted.replace(noted.find("1@3 0@7 "), 8, "1@3 2@7 0@9 ");
  for (const char* name : {"T$$Lambda.0x1f", "T$$Lambda/0x1f", "T$$Lambda+0x1f"}) {
    const std::string frames = "\tT.outer()V@4\t" + std::string(name) + ".apply()V@9";
    const json found = figures(noted, recorded(frames + std::string(kMain)));
    EXPECT_EQ(found["verdicts"]["other-inlining"], kHandlers) << name << found.dump();
  }
}

TEST(RecordedTruthTest, WhatIsOfTheNextSafepointIsNotHeldToTheMoment) {
  std::string traces = recorded(std::string(kMain));
  EXPECT_EQ(figures(shadows(), traces)["wrong"], kHandlers);
  for (size_t at = 0; (at = traces.find("\t0\n", at)) != std::string::npos; at += 6) {
    traces.insert(at + 2, "\t1");
  }
  const json found = figures(shadows(), traces);
  EXPECT_EQ(found["judged"], 0);
  EXPECT_EQ(found["not_judged"]["of the next safepoint, as it says"], kHandlers);
}

TEST(RecordedTruthTest, AnErrorIsRefusedAndTwoSamplesOfOneHandlerAreNotJudged) {
  std::string traces = recorded(kRight);
  traces += "sample\t9\t1\t" + std::to_string((kHandlers - 1) * kPeriodNs + 1) + "\t-1\n";
  // Two in one handler: which of them it took is not known.
  json found = figures(shadows(), traces);
  EXPECT_EQ(found["judged"], kHandlers - 1);
  EXPECT_EQ(found["not_judged"]["several samples at the time of one handler"], 2);
  traces.erase(traces.find("sample\t9\t1\t" + std::to_string((kHandlers - 1) * kPeriodNs + 5000)),
               std::string("sample\t9\t1\t4905000\t0\n").size());
  found = figures(shadows(), traces);
  EXPECT_EQ(found["verdicts"]["refused"], 1);
}

// Its frames are in the heap already, and the shadow stack is still the virtual thread's.
TEST(RecordedTruthTest, ACarrierThatIsAboutToUnmountIsNotJudged) {
  std::string noted = shadows();
  for (size_t at = 0; (at = noted.find("\t9\t1\t1\t3\t", at)) != std::string::npos;) {
    noted.replace(at, 9, "\t9\t1\t3\t3\t");
  }
  const json found = figures(noted, recorded("\tjdk/internal/vm/Continuation.enterSpecial()V@-1"));
  EXPECT_EQ(found["judged"], 0);
  EXPECT_EQ(found["not_judged"]["virtual thread comes or goes"], kHandlers);
}

TEST(RecordedTruthTest, ATraceThatWasCutNeedNotGoOn) {
  std::string traces = recorded(std::string(kInner) + std::string(kOuter));
  EXPECT_EQ(figures(shadows(), traces)["verdicts"]["short"], kHandlers);
  traces.replace(traces.find("trace\t0\t0"), 9, "trace\t0\t1");
  EXPECT_EQ(figures(shadows(), traces)["verdicts"]["right"], kHandlers);
}

TEST(RecordedTruthTest, AClockOfItsOwnIsFoundByTheJvmsTicksAndWhatFits) {
  // 7 s ahead by ticks of 2 ns, and by 20 us more, which no pair of clocks says.
  std::string traces = "trace\t0\t0" + kRight + "\n";
  for (int64_t i = 0; i < kHandlers; ++i) {
    const int64_t ns = i * kPeriodNs + kTakesNs / 2 + 7'000'000'000 + 20'000;
    traces += "sample\t9\t1\t" + std::to_string(ns / 2) + "\t0\n";
  }
  EXPECT_EQ(figures(shadows(), traces)["judged"], 0);
  const std::string pairs = "clock\t0\t-7000000000\nclock\t3500000000\t0\n";
  EXPECT_EQ(figures(pairs + shadows(), traces)["verdicts"]["right"], kHandlers);
}

TEST(RecordedTruthTest, SamplesAtNoHandlersTimeAreNotJudged) {
  const json found = figures(shadows(), recorded(kRight, 0, 3 * kPeriodNs / 2));
  EXPECT_EQ(found["judged"], 0);
  EXPECT_EQ(found["not_judged"]["no clock by which samples are those of handlers"], kHandlers);
}

TEST(RecordedTruthTest, SamplesFromBeforeItsTimeSayNothingOfTheClock) {
  std::string traces = recorded(kRight);
  for (int64_t i = 1; i <= kHandlers; ++i) {
    traces += "sample\t9\t1\t" + std::to_string(-i * kPeriodNs) + "\t0\n";
    traces += "sample\t8\t2\t" + std::to_string(i * kPeriodNs) + "\t0\n";
  }
  const json found = figures(shadows(), traces);
  EXPECT_EQ(found["verdicts"]["right"], kHandlers);
  EXPECT_EQ(found["not_judged"]["no handler at its time"], 2 * kHandlers);
}

TEST(RecordedTruthTest, AHandlerWithinAHandlerIsPartOfIt) {
  std::string noted = shadows();
  for (int64_t i = 0; i < kHandlers; ++i) {
    const int64_t begin = i * kPeriodNs + kTakesNs / 2 - 1;
    noted += "handler\t9\t1\t1\t0\t0\t" + std::to_string(begin) + "\t" + std::to_string(begin + 2) +
             "\t0\tc2\tc2\t0\n";
  }
  EXPECT_EQ(figures(noted, recorded(kRight))["verdicts"]["right"], kHandlers);
}

TEST(RecordedTruthTest, AVirtualThreadsAreFoundByItsNumber) {
  std::string noted = shadows();
  // Mounted on thread 9; deeper than what is there.
  for (size_t at = 0; (at = noted.find("handler\t9\t1\t1\t3", at)) != std::string::npos;) {
    noted.replace(at, 15, "handler\t9\t77\t2\t3");
  }
  std::string traces = recorded(std::string(kInner) + std::string(kOuter));
  for (size_t at = 0; (at = traces.find("sample\t9\t1\t", at)) != std::string::npos;) {
    traces.replace(at, 11, "sample\t0\t77\t");
  }
  EXPECT_EQ(figures(noted, traces)["verdicts"]["right"], kHandlers);
}

TEST(RecordedTruthTest, WhatIsNoSuchFileIsRefused) {
  EXPECT_THROW(judge("nonsense\n", recorded(kRight)), std::runtime_error);
  EXPECT_THROW(judge(shadows(), "trace\t0\t0\tT.inner@3\n"), std::runtime_error);
  EXPECT_THROW(judge(shadows(), "trace\t1\t0\n"), std::runtime_error);
}

}  // namespace
}  // namespace framestorm::stress
