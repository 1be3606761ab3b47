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

RegisteredTarget::RegisteredTarget(MutatorProfile profile) {
  if (profile.iterator_calls) {
    std::erase_if(profile.walkers, [](WalkerId id) { return !traits_of(id).iterator_calls; });
  }
  if (profile.stack_words || profile.thread_fields) {
    std::erase_if(profile.walkers, [](WalkerId id) { return traits_of(id).at_polls_only; });
  }
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
