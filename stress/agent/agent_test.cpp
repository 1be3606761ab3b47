// The agent as a user runs it, in java processes of the JDK under test.
#include "stress/agent/agent_fixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <set>
#include <sstream>
#include <thread>

#include "harness/input/binary.h"

namespace framestorm::stress {
namespace {

class Agent : public AgentTest, public testing::WithParamInterface<const char*> {};

TEST_P(Agent, SamplesAndDoesNoHarm) {
  const Ran ran =
      run(std::string("mode=") + GetParam() + ",interval=200us,costly=50", "2 300 4 200");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_NE(ran.output.find("all results were right"), std::string::npos) << ran.output;
  ASSERT_FALSE(ran.stats.empty());
  EXPECT_EQ(ran.stats["ended"], "vm-death");
  EXPECT_GT(ran.stats["samples"], 500);
  EXPECT_EQ(ran.stats["contained"], 0) << ran.findings;
  EXPECT_GT(ran.stats["checks"]["contract"]["made"], 500);
  EXPECT_GT(ran.stats["checks"]["determinism"]["made"], 0);
  EXPECT_GT(ran.stats["frames"]["asgct"]["count"], 100);
  EXPECT_NE(ran.read("flames.folded").find("Sampled.fibonacci"), std::string::npos);
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
  // Samples that nothing was wrong with are the fuzzers' to begin with.
  size_t seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ran.folder + "/seeds")) {
    const std::string bytes = ran.read("seeds/" + entry.path().filename().string());
    const auto* const begin = reinterpret_cast<const uint8_t*>(bytes.data());
    EXPECT_EQ(explain(check_artifact({begin, bytes.size()})), "") << entry.path();
    ++seeds;
  }
  EXPECT_GT(seeds, 0U);
}

TEST_P(Agent, ExtremeRateLeavesTheProgramItsTime) {
  const Ran ran = run(std::string("interval=1us,mode=") + GetParam(), "2 250 0 50");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_LT(ran.stats["rate_share"], 0.9) << "no machine delivers a million samples a second";
  EXPECT_GT(ran.stats["lost"].value("throttled", 0), 0) << ran.stats["lost"].dump();
}

INSTANTIATE_TEST_SUITE_P(Modes, Agent, testing::Values("same-thread", "separate-thread"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

using AgentTestPlain = AgentTest;

// Not AsyncGetCallTrace's: that writes to the stack that it walks (corpus/crashes,
// entry-frame-walk-writes-call-wrapper), and a program that runs on may die of it.
constexpr char kUnstopped[] = "mode=unstopped,walker=plugin,plugin=" FRAMESTORM_PLANTED "crash.so,";

TEST_F(AgentTestPlain, CrashesInWalksOfARunningThreadDoNoHarm) {
  const Ran ran = run(std::string(kUnstopped) + "interval=200us,costly=50", "2 300 4 200");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_NE(ran.output.find("all results were right"), std::string::npos) << ran.output;
  ASSERT_FALSE(ran.stats.empty());
  EXPECT_EQ(ran.stats["ended"], "vm-death");
  EXPECT_GT(ran.stats["samples"], 500);
  EXPECT_GT(ran.stats["contained"], 5);
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
  // Of a stack that was not still there is no input.
  EXPECT_TRUE(std::filesystem::is_empty(ran.folder + "/seeds"));
}

TEST_F(AgentTestPlain, ExtremeRateOfWalksOfARunningThreadLeavesTheProgramItsTime) {
  const Ran ran = run(std::string(kUnstopped) + "interval=1us", "2 250 0 50");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_LT(ran.stats["rate_share"], 0.9) << "no machine delivers a million samples a second";
  EXPECT_GT(ran.stats["lost"].value("throttled", 0), 0) << ran.stats["lost"].dump();
}

TEST_F(AgentTestPlain, ThreadsWhoseTimersPutThemIntoAQueueAreWalked) {
  const Ran ran = run("mode=queued,interval=5ms,costly=50", "2 800 4 200");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_NE(ran.output.find("all results were right"), std::string::npos) << ran.output;
  ASSERT_FALSE(ran.stats.empty());
  EXPECT_EQ(ran.stats["ended"], "vm-death");
  EXPECT_GT(ran.stats["samples"], 50);
  EXPECT_EQ(ran.stats["findings"], 0) << ran.findings;
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
  // Threads that wait have no ticks.
  EXPECT_LT(ran.stats["idle_samples"].get<double>(), 0.2 * ran.stats["samples"].get<double>());
}

TEST_F(AgentTestPlain, ChurnOfThreadsIsNormal) {
  const Ran ran = run("threads=all,interval=1ms", "1 1000 0 5000");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["threads"]["seen"], 5000);
  EXPECT_EQ(ran.stats["findings"], 0) << ran.findings;
}

TEST_F(AgentTestPlain, TenThousandThreadsAreNormal) {
  const Ran ran = run("threads=all,interval=1s", "1 1000 10000 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["threads"]["peak"], 10000) << ran.output;
  EXPECT_GT(ran.stats["samples"], 1000);
}

TEST_F(AgentTestPlain, TenThousandThreadsAreNormalFromOutside) {
  const Ran ran = run("mode=separate-thread,threads=all,interval=1s", "1 1000 10000 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["threads"]["peak"], 10000) << ran.output;
  EXPECT_GT(ran.stats["samples"], 1000) << ran.stats.dump();
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
}

TEST_F(AgentTestPlain, OfManyRunningThreadsSomeAreSampledAtOnce) {
  const unsigned cores = std::thread::hardware_concurrency();
  const Ran ran = run("interval=1ms", std::to_string(48 * cores) + " 1000 0 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["threads"]["peak"], 48 * cores) << ran.output;
  EXPECT_LE(ran.stats["threads"]["most_sampled"], 32 * cores);
  // Also on a busy machine, where each has a small share of the processors.
  EXPECT_GT(ran.stats["threads"]["most_sampled"], 16 * cores);
  EXPECT_GT(ran.stats["samples"], 1000);
}

// HotSpot looks at each frame of the stack in its SIGSEGV handler, where no signal arrives.
TEST_F(AgentTestPlain, TicksInHotSpotsOwnHandlersAreToldApart) {
  const Ran ran = run("interval=100us", "0 0 0 0 40");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["lost"].value("signals-blocked", 0), 10) << ran.stats["lost"].dump();
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
}

TEST_F(AgentTestPlain, ThreadsThatWaitAreLeftAloneUnlessAskedFor) {
  const Ran running = run("interval=100us", "1 300 500 0");
  EXPECT_EQ(running.status, 0) << running.output;
  EXPECT_GT(running.stats["lost"].value("waiting", 0), 0) << running.stats["lost"].dump();
  EXPECT_EQ(accounted(running.stats), running.stats["ticks"]) << running.stats.dump();
  const Ran all = run("threads=all,interval=10ms", "1 300 500 0");
  EXPECT_EQ(all.status, 0) << all.output;
  EXPECT_FALSE(all.stats["lost"].contains("waiting")) << all.stats["lost"].dump();
  EXPECT_GT(all.stats["idle_samples"], 500);
}

TEST_F(AgentTestPlain, ThreadsThatGetNoTimerAreCountedAndSpokenOf) {
  const Ran ran = run("threads=all,interval=1ms", "1 1500 50 0", "prlimit --sigpending=20");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["lost"].value("no-timer", 0), 50) << ran.stats["lost"].dump();
  EXPECT_LE(ran.stats["threads"]["most_sampled"], 20);
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
  const size_t said = ran.output.find("ulimit -i");
  ASSERT_NE(said, std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("ulimit -i", said + 1), std::string::npos) << ran.output;
}

TEST_F(AgentTestPlain, DurationEndsSamplingAndNotTheProgram) {
  const Ran ran = run("duration=1,interval=1ms", "1 2000 0 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.stats["ended"], "duration");
  EXPECT_GT(ran.stats["samples"], 50);
}

TEST_F(AgentTestPlain, NothingIsSampledBeforeTheWarmupIsOver) {
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const Ran ran =
        run(std::string("warmup=1000,threads=all,interval=1ms,mode=") + mode, "1 500 5 20");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_EQ(ran.stats["ended"], "vm-death");
    EXPECT_GT(ran.stats["threads"]["seen"], 20);
    EXPECT_EQ(ran.stats["threads"]["most_sampled"], 0);
    EXPECT_EQ(ran.stats["ticks"], 0);
    EXPECT_EQ(ran.stats["samples"], 0);
  }
}

TEST_F(AgentTestPlain, RandomThreadsTakeTurns) {
  // Of each thread that a turn comes to, some samples are kept, which say whose they are.
  const Ran ran =
      run("threads=random:2,interval=1ms,keep=1000,walker=plugin,plugin=" FRAMESTORM_PLANTED
          "wrong_frame.so",
          "1 1200 50 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.stats["threads"]["most_sampled"], 2);
  EXPECT_EQ(accounted(ran.stats), ran.stats["ticks"]) << ran.stats.dump();
  std::set<int> sampled;
  for (const auto& file : std::filesystem::directory_iterator(ran.folder + "/samples")) {
    if (file.path().extension() != ".sample") continue;
    const std::string name = "samples/" + file.path().filename().string();
    sampled.insert(nlohmann::json::parse(ran.read(name))["thread"]["tid"].get<int>());
  }
  EXPECT_GT(sampled.size(), 4U) << ran.stats.dump();
}

// Per second of their processor time: other load takes that, too.
TEST_F(AgentTestPlain, RunningThreadsAreSampledAtTheRateAskedFor) {
  const Ran ran = run("interval=1ms", "2 1000 0 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GE(ran.stats["rate_hz"].get<double>(), 0.9 * ran.stats["rate_asked_hz"].get<double>())
      << ran.stats.dump();
}

TEST_F(AgentTestPlain, WrongOptionsKeepTheJvmFromStarting) {
  const Ran ran = run("wolker=asgct", "1 100 0 0");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.output.find("unknown option 'wolker'"), std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("all results"), std::string::npos) << ran.output;
}

TEST_F(AgentTestPlain, AJvmThatCannotBeJoinedGoesOn) {
  const Ran ran = attach("walker=plugin,plugin=/none.so", "1 100 0 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_NE(ran.output.find("/none.so"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("all results were right"), std::string::npos) << ran.output;
  EXPECT_TRUE(ran.stats.empty());
}

// Threads start and end while the agent is being set up.
TEST_F(AgentTestPlain, JoinsAJvmThatStartsThreads) {
  const Ran ran = attach("interval=500us", "2 1000 0 1000");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["samples"], 100) << ran.output;
}

TEST_F(AgentTestPlain, JoinsAJvmThatRuns) {
  const Ran ran = attach("interval=500us", "2 1000 2 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["samples"], 100) << ran.output;
  EXPECT_NE(ran.read("flames.folded").find("Sampled.fibonacci"), std::string::npos);
}

struct Planted {
  const char* name;
  const char* kind;
  const char* clause;
  friend void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }
};

class PlantedDefect : public AgentTest, public testing::WithParamInterface<Planted> {};

TEST_P(PlantedDefect, IsFoundAndDoesNoHarm) {
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const Ran ran = run(std::string("walker=plugin,plugin=" FRAMESTORM_PLANTED) + GetParam().name +
                            ".so,mode=" + mode + ",interval=100us,threads=all,costly=64",
                        "2 120 0 0");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_NE(ran.output.find("all results were right"), std::string::npos) << ran.output;
    const nlohmann::json finding = ran.finding(GetParam().kind, GetParam().clause);
    ASSERT_FALSE(finding.empty()) << mode << ran.findings << ran.stats.dump();
    const nlohmann::json sample =
        nlohmann::json::parse(ran.read(finding["artifact"].get<std::string>()));
    EXPECT_EQ(sample["walker"], "plugin");
    EXPECT_EQ(sample["mode"], mode);
    EXPECT_FALSE(sample["stack"]["bytes"].get<std::string>().empty());
    EXPECT_FALSE(sample["registers"]["pc"]["value"].get<std::string>().empty());
    EXPECT_EQ(finding["text"].get<std::string>().rfind("framestorm-input 1", 0), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Defects, PlantedDefect,
                         testing::Values(Planted{"crash", "fault", ""},
                                         Planted{"again", "fault", ""},
                                         Planted{"overflow", "fault", ""},
                                         Planted{"hang", "hang", ""},
                                         Planted{"wrong_frame", "contract", "method-unresolved"},
                                         Planted{"fickle", "contract", "not-deterministic"}),
                         [](const auto& info) { return std::string(info.param.name); });

// It waits for a thread in Java: what changes there is the walker's doing.
TEST_F(AgentTestPlain, WhatTheVmChangedBetweenTwoWalksIsNoFinding) {
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const Ran ran = run(std::string("walker=plugin,plugin=" FRAMESTORM_PLANTED "moved.so,mode=") +
                            mode + ",interval=100us,costly=1,threads=all",
                        "1 200 4 0");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_GT(ran.stats["checks"]["determinism"]["made"], 300) << mode;
    std::istringstream lines(ran.findings);
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json found = nlohmann::json::parse(line);
      if (found["type"] != "finding") continue;
      EXPECT_EQ(found["clause"], "not-deterministic") << mode << line;
      EXPECT_EQ(found["victim"].get<std::string>().rfind("_thread_in_Java", 0), 0U) << mode << line;
    }
  }
}

// AsyncGetCallTrace's traces, cut: harness/walkers/test_plugins/declared_walker.c.
TEST_F(AgentTestPlain, ATraceThatEndsEarlyIsAFindingUnlessTheWalkerSaysSo) {
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const auto sampled = [&](const std::string& options) {
      const Ran ran = run("walker=plugin,plugin=" FRAMESTORM_DECLARED "=" + options +
                              ",mode=" + mode + ",interval=200us,costly=10",
                          "2 200 0 0");
      EXPECT_EQ(ran.status, 0) << ran.output;
      EXPECT_GT(ran.stats["frames"]["plugin"]["count"], 100) << ran.stats.dump();
      return ran;
    };
    const auto is_early = [](const Ran& ran) {
      return !ran.finding("contract", "ends-early").empty() ||
             !ran.finding("contract", "outermost-frame-differs").empty();
    };
    const Ran silent = sampled("cut");
    EXPECT_TRUE(is_early(silent)) << silent.stats.dump();
    EXPECT_EQ(silent.stats["frames"]["plugin"]["truncated"], 0);
    const Ran said = sampled("cut+said");
    EXPECT_FALSE(is_early(said)) << said.findings;
    EXPECT_EQ(said.stats["frames"]["plugin"]["truncated"], said.stats["frames"]["plugin"]["count"]);
  }
}

// Of each walk, or of a few: only a walk that is made again shows the second.
TEST_F(AgentTestPlain, AMissingOutermostFrameIsFound) {
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const auto sampled = [&](const char* options, const char* program) {
      return run(std::string("walker=plugin,plugin=" FRAMESTORM_DECLARED "=") + options +
                     ",interval=100us,mode=" + mode,
                 program);
    };
    const Ran rarely = sampled("outermost+rarely,costly=4", "2 600 0 0");
    EXPECT_FALSE(rarely.finding("contract", "not-deterministic").empty())
        << mode << rarely.stats.dump();
    const Ran always = sampled("outermost,costly=50", "2 400 0 0");
    EXPECT_TRUE(always.finding("contract", "not-deterministic").empty()) << mode << always.findings;
    EXPECT_FALSE(always.finding("contract", "outermost-frame-differs").empty() &&
                 always.finding("contract", "ends-early").empty())
        << mode << always.stats.dump();
  }
}

// Its handler runs where it would without framestorm: HotSpot's has no stack of its own.
TEST_F(AgentTestPlain, AWalkerThatRecoversFromItsFaultsDoesSoOnTheWalkedStack) {
  const Ran ran =
      run("walker=plugin,plugin=" FRAMESTORM_DECLARED "=near,interval=1ms", "1 500 0 0");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_GT(ran.stats["samples"], 100) << ran.stats.dump();
  EXPECT_EQ(ran.stats["contained"], 0) << ran.findings;
}

TEST_F(AgentTestPlain, AModeThatAWalkerDoesNotDeclareIsRefused) {
  const Ran ran =
      run("walker=plugin,plugin=" FRAMESTORM_DECLARED "=same,mode=separate-thread", "2 500 0 0");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.output.find("does not walk in mode separate-thread"), std::string::npos)
      << ran.output;
}

// In one file, which is linked and nowhere spoken of: harness/oracles/added_oracle_fixture.cpp.
TEST_F(AgentTestPlain, AnAddedOracleIsHeard) {
  agent_ = FRAMESTORM_AGENT_WITH_ADDED_ORACLES;
  for (const char* mode : {"same-thread", "separate-thread"}) {
    const Ran ran = run(std::string("interval=200us,costly=10,mode=") + mode, "2 200 0 0",
                        "env FRAMESTORM_ADDED_ORACLES=1");
    EXPECT_EQ(ran.status, 0) << ran.output;
    EXPECT_FALSE(ran.finding("contract", "added").empty()) << mode << ran.findings;
    const nlohmann::json& checks = ran.stats["checks"];
    EXPECT_GT(checks["added"]["made"], 0) << checks.dump();
    EXPECT_FALSE(checks["added"].contains("not_judged")) << checks.dump();
    // What asks for more than there is is said.
    EXPECT_NE(checks["careless"].value("not_judged", "").find("does not declare"),
              std::string::npos)
        << checks.dump();
    EXPECT_EQ(checks["halted"].value("not_judged", ""), "it needs a halted world");
    EXPECT_EQ(checks["truth"].value("not_judged", ""), "it needs a scenario's known frames");
  }
}

TEST_F(AgentTestPlain, StrictDiesAsTheJvmWouldAndLeavesTheWalk) {
  const Ran ran =
      run("walker=plugin,plugin=" FRAMESTORM_PLANTED "crash.so,on-finding=strict", "2 3000 0 0");
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.output.find("SIGSEGV"), std::string::npos) << ran.output;
  EXPECT_TRUE(ran.has_unfinished_walk());
}

}  // namespace
}  // namespace framestorm::stress
