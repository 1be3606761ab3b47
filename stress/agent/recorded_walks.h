// Samples as oracles see them: what was walked, and the further walks that the slot made while the
// victim stood still.
#pragma once

#include "harness/oracles/further_walks.h"
#include "harness/oracles/walk_view.h"
#include "stress/agent/sampler.h"

namespace framestorm::stress {

// What is offered of one sample. `slot`: null for one that is judged by its trace alone.
Needs offered_needs(const OracleSet& oracles, const WalkSlot* slot);

class RecordedWalks final : public WalkMaker {
 public:
  // Borrows everything. A sample without a slot has none.
  RecordedWalks(const WalkSlot* slot, const Sampler& sampler) : slot_(slot), sampler_(sampler) {}

  const Walker* walker(WalkerId id) const override { return sampler_.walker(id); }
  bool offers(const FurtherWalk& walk) const override {
    return slot_ != nullptr && slot_->was_asked_for(walk);
  }
  const WalkRecord* make(const FurtherWalk& walk) override;

 private:
  const WalkSlot* slot_;
  const Sampler& sampler_;
};

}  // namespace framestorm::stress
