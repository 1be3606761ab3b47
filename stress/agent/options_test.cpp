#include "stress/agent/options.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace framestorm::stress {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_options(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(AgentOptions, DefaultsNeedOnlyAFolder) {
  const Options options = parse_options("out=/tmp/x");
  EXPECT_EQ(options.out, "/tmp/x");
  EXPECT_EQ(options.walkers, std::vector{WalkerId::asgct});
  EXPECT_EQ(options.mode, SamplingMode::same_thread);
  EXPECT_EQ(options.interval, std::chrono::microseconds(100));
  EXPECT_EQ(options.threads, ThreadChoice::running);
  EXPECT_FALSE(options.duration);
  EXPECT_FALSE(options.strict);
  EXPECT_NE(refusal("walker=asgct").find("out=DIR"), std::string::npos);
}

TEST(AgentOptions, EveryKeyIsHeard) {
  const Options options = parse_options(
      "walker=asgct+asgst-env,mode=separate-thread,interval=15ms,threads=random:8,out=d,seed=7,"
      "depth=64,costly=0,duration=2.5,warmup=1,on-finding=strict,keep=5,seeds=6,flames=0");
  EXPECT_EQ(options.walkers, (std::vector{WalkerId::asgct, WalkerId::asgst_env}));
  EXPECT_EQ(options.mode, SamplingMode::separate_thread);
  EXPECT_EQ(options.interval, std::chrono::milliseconds(15));
  EXPECT_EQ(threads_text(options), "random:8");
  EXPECT_EQ(options.seed, 7U);
  EXPECT_EQ(options.depth, 64);
  EXPECT_EQ(options.costly, 0U);
  EXPECT_EQ(options.duration, 2.5);
  EXPECT_EQ(options.warmup, 1.0);
  EXPECT_TRUE(options.strict);
  EXPECT_EQ(options.keep, 5U);
  EXPECT_EQ(options.seeds, 6U);
  EXPECT_FALSE(options.flames);
}

TEST(AgentOptions, AWalkerInASharedObjectHasOptionsOfItsOwn) {
  const auto plugin = [](const std::string& value) {
    return parse_options("out=d,walker=plugin,plugin=" + value).plugin;
  };
  EXPECT_EQ(plugin("/a/b.so"), "/a/b.so");
  EXPECT_EQ(plugin("b.so=mask"), "b.so=mask");
  EXPECT_EQ(plugin("b.so%3Dstart%2cevent=wall%25"), "b.so=start,event=wall%");
  for (const char* wrong : {"b.so=5%", "b.so=%4", "b.so=%zz"}) {
    EXPECT_NE(refusal(std::string("out=d,walker=plugin,plugin=") + wrong).find("%25"),
              std::string::npos)
        << wrong;
  }
}

TEST(AgentOptions, UnitsOfAnInterval) {
  EXPECT_EQ(parse_options("out=d,interval=1500ns").interval.count(), 1500);
  EXPECT_EQ(parse_options("out=d,interval=10us").interval.count(), 10'000);
  EXPECT_EQ(parse_options("out=d,interval=1s").interval.count(), 1'000'000'000);
  for (const char* wrong : {"10", "us", "0us", "-1us", "1h", "10 us", "99999999999999999999s"}) {
    EXPECT_NE(refusal(std::string("out=d,interval=") + wrong).find("100us"), std::string::npos)
        << wrong;
  }
}

TEST(AgentOptions, WhatIsWrongIsNamed) {
  EXPECT_NE(refusal("out=d,wolker=asgct").find("wolker"), std::string::npos);
  EXPECT_NE(refusal("out=d,walker=asgkt").find("asgst-env"), std::string::npos);
  EXPECT_NE(refusal("out=d,mode=both").find("separate-thread"), std::string::npos);
  EXPECT_NE(refusal("out=d,threads=random").find("random:8"), std::string::npos);
  EXPECT_NE(refusal("out=d,depth=0").find("2048"), std::string::npos);
  EXPECT_NE(refusal("out=d,flames").find("value"), std::string::npos);
  EXPECT_NE(refusal("out=d,walker=plugin").find("plugin=PATH"), std::string::npos);
  EXPECT_NE(refusal("out=d,plugin=x.so").find("walker=plugin"), std::string::npos);
  EXPECT_NE(refusal("out=d,walker=asgst-thread").find("same-thread"), std::string::npos);
  EXPECT_NE(refusal("out=d,on-finding=strict,mode=unstopped").find("on-finding=survey"),
            std::string::npos);
}

}  // namespace
}  // namespace framestorm::stress
