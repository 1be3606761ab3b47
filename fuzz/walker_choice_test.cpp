#include "fuzz/walker_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/input/walker_table.h"

namespace framestorm {
namespace {

using Walkers = std::vector<WalkerId>;
using Modes = std::vector<Mode>;

const Walkers kUsable = {WalkerId::asgct, WalkerId::asgst, WalkerId::asgst_env};
const Modes kBoth = {Mode::same_thread, Mode::separate_thread};
const std::map<WalkerId, std::string> kStock = {{WalkerId::asgst, "not exported"},
                                                {WalkerId::asgst_env, "not exported either"}};

std::string refusal(const Walkers& wanted, const Walkers& usable, const Modes& modes,
                    const std::map<WalkerId, std::string>& missing) {
  try {
    const WalkerChoice choice(wanted, usable, missing, modes);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(WalkerChoice, TakesAllThereAre) {
  EXPECT_EQ(WalkerChoice({}, kUsable, {}, kBoth).walkers(), kUsable);
  EXPECT_EQ(WalkerChoice({}, kUsable, kStock, kBoth).walkers(), Walkers{WalkerId::asgct});
}

TEST(WalkerChoice, OrThoseThatAreWanted) {
  const Walkers wanted = {WalkerId::asgst};
  EXPECT_EQ(WalkerChoice(wanted, kUsable, {}, kBoth).walkers(), wanted);
  EXPECT_EQ(refusal(wanted, kUsable, kBoth, kStock), "no walker asgst: not exported");
}

TEST(WalkerChoice, RefusesATargetWithoutWalkers) {
  EXPECT_EQ(refusal({}, {WalkerId::asgst_env}, kBoth, kStock),
            "no walker that this target can use: not exported either");
}

TEST(WalkerChoice, LeavesOutModesThatNoneWalksIn) {
  const Walkers wanted = {WalkerId::asgst_env};
  EXPECT_EQ(WalkerChoice(wanted, kUsable, {}, kBoth).modes(), Modes{Mode::separate_thread});
  EXPECT_EQ(refusal(wanted, kUsable, {Mode::same_thread}, {}),
            "walker asgst-env has no mode same-thread");
}

TEST(WalkerChoice, APluginIsFuzzedInTheModesThatItDeclares) {
  const Walkers wanted = {WalkerId::plugin, WalkerId::asgct};
  const auto same_thread_only = [](WalkerId id, Mode mode) {
    return id != WalkerId::plugin || mode == Mode::same_thread;
  };
  EXPECT_EQ(WalkerChoice({wanted.begin(), 1}, kUsable, {}, kBoth, same_thread_only).modes(),
            Modes{Mode::same_thread});
  const WalkerChoice choice(wanted, kUsable, {}, kBoth, same_thread_only);
  EXPECT_EQ(choice.modes(), kBoth);
  Input input;
  input.walker = WalkerId::plugin;
  input.mode = Mode::separate_thread;
  EXPECT_TRUE(choice.choose(&input));
  EXPECT_EQ(input.walker, WalkerId::asgct);
}

TEST(WalkerChoice, TellsWhichWalkInAMode) {
  const WalkerChoice choice({}, kUsable, {}, kBoth);
  Walkers in_either;
  for (const Mode mode : kBoth) {
    for (const WalkerId id : choice.walkers_in(mode)) {
      EXPECT_TRUE(traits_of(id).walks_in(mode));
      in_either.push_back(id);
    }
  }
  for (const WalkerId id : kUsable) EXPECT_NE(std::ranges::find(in_either, id), in_either.end());
}

TEST(WalkerChoice, GivesAnInputAWalkerOfItsMode) {
  const WalkerChoice choice({}, kUsable, {}, kBoth);
  std::set<WalkerId> given;
  for (unsigned i = 0; i < static_cast<unsigned>(WalkerId::count); ++i) {
    for (const Mode mode : kBoth) {
      Input input;
      input.walker = static_cast<WalkerId>(i);
      input.mode = mode;
      const Input before = input;
      const bool changed = choice.choose(&input);
      EXPECT_EQ(changed, input.walker != before.walker);
      EXPECT_TRUE(traits_of(input.walker).walks_in(mode));
      EXPECT_NE(std::ranges::find(kUsable, input.walker), kUsable.end());
      Input again = before;
      choice.choose(&again);
      EXPECT_EQ(again, input);
      EXPECT_FALSE(choice.choose(&again));
      given.insert(input.walker);
    }
  }
  EXPECT_EQ(given.size(), kUsable.size()) << "each gets some";
  Input own;
  own.walker = WalkerId::asgst;
  EXPECT_FALSE(choice.choose(&own));
  EXPECT_EQ(own.walker, WalkerId::asgst);
}

}  // namespace
}  // namespace framestorm
