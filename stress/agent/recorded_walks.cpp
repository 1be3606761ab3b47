#include "stress/agent/recorded_walks.h"

#include <algorithm>

namespace framestorm::stress {

Needs offered_needs(const OracleSet& oracles, const WalkSlot* slot) {
  if (slot == nullptr) {
    return oracles.offered().without({Need::further_walks, Need::incidents, Need::guarded_frames});
  }
  return slot->is_comparable() ? oracles.offered()
                               : oracles.offered().without({Need::further_walks});
}

const WalkRecord* RecordedWalks::make(const FurtherWalk& walk) {
  const auto made = std::ranges::find(slot_->rewalks(), walk, &Rewalk::walk);
  const bool returned = made != slot_->rewalks().end() && made->record.end == WalkEnd::returned;
  return returned ? &made->record : nullptr;
}

}  // namespace framestorm::stress
