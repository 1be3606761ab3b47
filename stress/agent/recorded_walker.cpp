#include "stress/agent/recorded_walker.h"

#include <algorithm>

namespace framestorm::stress {

Walker* RecordedRewalks::walker(WalkerId id) const {
  if (slot_ == nullptr || !std::ranges::count(slot_->rewalks(), id, &Rewalked::walker)) {
    return nullptr;
  }
  return walkers_[static_cast<size_t>(id)].get();
}

bool RecordedRewalks::find(WalkerId walker, int32_t depth, uint32_t options, Answer* answer) {
  if (slot_ == nullptr || slot_->vm_went_on()) return false;
  for (const Rewalked& made : slot_->rewalks()) {
    if (made.walker != walker || made.depth != depth || made.options != options) continue;
    RecordedWalker& recorded = *walkers_[static_cast<size_t>(walker)];
    if (walker != own_) recorded.set_facts(made.has_facts ? &made.facts : nullptr);
    answer->result = made.result;
    if (made.end != WalkEnd::returned) return false;
    const auto count = static_cast<size_t>(std::clamp(made.result, 0, depth));
    const std::byte* const frames = slot_->rewalk_frames(made);
    answer->frames.assign(frames, frames + count * recorded.layout().stride);
    return true;
  }
  return false;
}

}  // namespace framestorm::stress
