#include "fuzz/mutator_profile.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace framestorm {
namespace {

// Filled before main(), in whatever order.
std::vector<MutatorProfile>& registered() {
  static std::vector<MutatorProfile> profiles;
  return profiles;
}

}  // namespace

bool MutatorProfile::is_for(WalkerId id) const {
  const WalkerTraits& walker = traits_of(id);
  if (walker.needs_running_vm || (iterator_calls && !walker.iterator_calls) ||
      (queue_calls && !walker.queue_calls)) {
    return false;
  }
  return !walker.at_polls_only || !(stack_words || thread_fields);
}

RegisteredTarget::RegisteredTarget(MutatorProfile profile) {
  std::erase_if(profile.walkers, [&](WalkerId id) { return !profile.is_for(id); });
  registered().push_back(std::move(profile));
}

std::span<const MutatorProfile> mutator_profiles() { return registered(); }

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const MutatorProfile& profile : registered()) names.emplace_back(profile.target);
  return names;
}

const MutatorProfile* find_mutator_profile(std::string_view target) {
  const auto found = std::ranges::find(registered(), target, &MutatorProfile::target);
  return found == registered().end() ? nullptr : &*found;
}

std::string_view only_target() {
  assert(registered().size() == 1);
  return registered().front().target;
}

}  // namespace framestorm
