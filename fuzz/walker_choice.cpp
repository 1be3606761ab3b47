#include "fuzz/walker_choice.h"

#include <algorithm>
#include <utility>

#include "harness/base/error.h"
#include "harness/input/walker_table.h"

namespace framestorm {

WalkerChoice::WalkerChoice(std::span<const WalkerId> wanted, std::span<const WalkerId> usable,
                           const std::map<WalkerId, std::string>& missing,
                           std::span<const Mode> modes, WalksIn declared)
    : walks_in_(std::move(declared)) {
  for (const WalkerId id : wanted.empty() ? usable : wanted) {
    const auto why = missing.find(id);
    if (why == missing.end()) {
      walkers_.push_back(id);
    } else if (!wanted.empty()) {
      throw SetupError("no walker " + std::string(name_of(id)) + ": " + why->second);
    }
  }
  if (walkers_.empty()) {
    throw SetupError("no walker that this target can use: " + missing.at(usable.front()));
  }
  std::ranges::copy_if(modes, std::back_inserter(modes_), [this](Mode mode) {
    return std::ranges::any_of(walkers_, [&](WalkerId id) { return fits(id, mode); });
  });
  if (modes_.empty()) {
    throw SetupError("walker " + std::string(name_of(walkers_.front())) + " has no mode " +
                     std::string(name_of(modes.front())));
  }
}

bool WalkerChoice::fits(WalkerId id, Mode mode) const {
  return std::ranges::find(walkers_, id) != walkers_.end() && walks_in_(id, mode);
}

std::vector<WalkerId> WalkerChoice::walkers_in(Mode mode) const {
  std::vector<WalkerId> fitting;
  std::ranges::copy_if(walkers_, std::back_inserter(fitting),
                       [&](WalkerId id) { return walks_in_(id, mode); });
  return fitting;
}

bool WalkerChoice::choose(Input* input) const {
  if (fits(input->walker, input->mode)) return false;
  const std::vector<WalkerId> fitting = walkers_in(input->mode);
  if (fitting.empty()) return false;
  input->walker = fitting[static_cast<size_t>(input->walker) % fitting.size()];
  return true;
}

}  // namespace framestorm
