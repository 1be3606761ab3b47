#include "harness/jvm/coverage.h"

#include <algorithm>

#include "harness/jvm/jvm.h"

namespace framestorm {

Coverage::Coverage(const Jvm& jvm) {
  using Export = void (*)(uint8_t** counters_begin, uint8_t** counters_end,
                          const uintptr_t** edges_begin, const uintptr_t** edges_end);
  const auto get = reinterpret_cast<Export>(jvm.symbol("framestorm_coverage"));
  if (get == nullptr) return;
  uint8_t* counters_begin = nullptr;
  uint8_t* counters_end = nullptr;
  const uintptr_t* edges_begin = nullptr;
  const uintptr_t* edges_end = nullptr;
  get(&counters_begin, &counters_end, &edges_begin, &edges_end);
  counters_ = {counters_begin, counters_end};
  edges_ = {reinterpret_cast<const Edge*>(edges_begin), reinterpret_cast<const Edge*>(edges_end)};
  if (edges_.size() != counters_.size()) {
    throw SetupError(jvm.library_path().string() + " has " + std::to_string(counters_.size()) +
                     " coverage counters but " + std::to_string(edges_.size()) +
                     " of their pcs: build it again with `scripts/framestorm jdk build`");
  }
  if (!available()) return;
  forget_methods_ = reinterpret_cast<void (*)()>(jvm.symbol("framestorm_forget_methods"));
}

Coverage::Aside::Aside(Coverage& coverage) : coverage_(coverage) {
  if (!coverage_.available()) return;
  if (coverage_.kept_.size() == coverage_.scopes_) coverage_.kept_.emplace_back();
  coverage_.kept_[coverage_.scopes_++].assign(coverage_.counters_.begin(),
                                              coverage_.counters_.end());
}

Coverage::Aside::~Aside() {
  if (!coverage_.available()) return;
  std::ranges::copy(coverage_.kept_[--coverage_.scopes_], coverage_.counters_.begin());
}

void ReachedEdges::note(std::span<const uint8_t> counters) {
  noted_.resize(counters.size());
  // Once per execution: a loop that compilers make vectors of.
  uint8_t* const noted = noted_.data();
  for (size_t i = 0; i < counters.size(); ++i) noted[i] |= counters[i];
}

std::vector<uint32_t> ReachedEdges::take_new() {
  std::vector<uint32_t> found;
  known_.resize(noted_.size());
  for (size_t i = 0; i < noted_.size(); ++i) {
    if (noted_[i] == 0 || known_[i]) continue;
    known_[i] = true;
    found.push_back(static_cast<uint32_t>(i));
  }
  taken_ += found.size();
  return found;
}

}  // namespace framestorm
