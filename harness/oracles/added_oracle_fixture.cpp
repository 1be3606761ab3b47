// Oracles that a test adds to fuzzing, replay and stress. Each is a class and its registration, as
// any other; nothing else speaks of them.
#include "harness/oracles/added_oracle_fixture.h"

#include <atomic>
#include <cstdlib>

#include "harness/oracles/oracle.h"

namespace framestorm {
namespace {

// Also read in signal handlers.
std::atomic<bool> on{std::getenv(jvm_test::kAddedOracles) != nullptr};

// One that compares with a walk which no other oracle asks for.
class AddedOracle final : public Oracle {
 public:
  static void ask(const WalkView& view, FurtherWalks* out) {
    if (on) out->add(third(view));
  }
  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!on || further.make(third(view)) == nullptr) return;
    out->broken("added", "there was a walk to compare with");
  }

 private:
  static FurtherWalk third(const WalkView& view) {
    FurtherWalk walk = FurtherWalk::again(view);
    walk.number = 3;
    return walk;
  }
};
const RegisteredOracle<AddedOracle> kAdded(
    {.name = "added", .order = 200, .needs = {Need::further_walks}, .ask = &AddedOracle::ask});

// One that asks for what it does not declare.
class CarelessOracle final : public Oracle {
 public:
  void check(const WalkView& view, Further& further, Violations* out) override {
    if (!on || further.make(FurtherWalk::again(view)) == nullptr) return;
    out->broken("careless", "it got a walk that it did not declare");
  }
};
const RegisteredOracle<CarelessOracle> kCareless({.name = "careless",
                                                  .order = 210,
                                                  .needs = {Need::further_walks}});

// One that looks at the victim as it stands.
class HaltedOracle final : public Oracle {
 public:
  void check(const WalkView&, Further&, Violations* out) override {
    if (on) out->broken("halted", "it looked");
  }
};
const RegisteredOracle<HaltedOracle> kHalted({.name = "halted",
                                              .order = 220,
                                              .needs = {Need::halted_world}});

}  // namespace

void jvm_test::switch_added_oracles_on() { on = true; }

}  // namespace framestorm
