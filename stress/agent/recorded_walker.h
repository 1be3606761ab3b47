// Walkers and walks as they were, for oracles that look at them later: RecordedWalker answers for
// an adapter with what was noted of one walk, RecordedRewalks gives the walks that the slot made
// while the victim stood still.
#pragma once

#include <array>
#include <memory>

#include "harness/oracles/oracle.h"
#include "stress/agent/walk_slot.h"

namespace framestorm::stress {

class RecordedWalker final : public Walker {
 public:
  // Is what `walker` is, in everything but walks.
  explicit RecordedWalker(const Walker& walker) : Walker(walker.traits()) {}

  void set_facts(const WalkFacts* facts) { facts_ = facts; }

  const WalkFacts* facts() const override { return facts_; }
  int32_t walk(const WalkTarget&, std::byte*, int32_t, void*) noexcept override { return 0; }

 private:
  const WalkFacts* facts_ = nullptr;
};

using RecordedWalkers =
    std::array<std::unique_ptr<RecordedWalker>, static_cast<size_t>(WalkerId::count)>;

class RecordedRewalks final : public Rewalk {
 public:
  // Of a sample without a slot there are none. Borrows everything.
  RecordedRewalks(const WalkSlot* slot, const RecordedWalkers& walkers, WalkerId own)
      : slot_(slot), walkers_(walkers), own_(own) {}

  bool walk(int32_t depth, Place, Answer* answer) override { return find(own_, depth, 0, answer); }
  bool walk_as(const Input& variant, Place, Answer* answer) override {
    return find(variant.walker, variant.call.raw_depth, variant.call.options, answer);
  }
  Walker* walker(WalkerId id) const override;

 private:
  bool find(WalkerId walker, int32_t depth, uint32_t options, Answer* answer);

  const WalkSlot* slot_;
  const RecordedWalkers& walkers_;
  WalkerId own_;
};

}  // namespace framestorm::stress
