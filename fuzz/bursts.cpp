#include "fuzz/bursts.h"

#include <utility>

#include "harness/input/binary.h"

namespace framestorm {

void Bursts::walk(const Input& input) {
  for (unsigned chain = 0; chain < kChains; ++chain) walk_chain(start_of_chain(input));
}

void Bursts::walk_chain(const Input& start) {
  const std::span<uint8_t> counters = loop_.coverage().counters();
  bool found = false;
  mutant_ = start;
  for (unsigned i = 0; i < kChainLength; ++i) {
    mutator_.mutate(&mutant_, loop_.rng());
    encode(mutant_, &bytes_);
    const Feedback::Ending ending = loop_.walk(mutant_, bytes_);
    loop_.reached(counters);
    if (!guidance_.is_news(ending, novelty_.take(counters))) continue;
    remember(mutant_);
    // What the engine has not seen yet is the next that it is given: one of a chain, the last.
    if (found) {
      promising_.back() = mutant_;
    } else if (promising_.size() < kMostPromising) {
      promising_.push_back(mutant_);
      found = true;
    }
  }
}

// The engine's input, or one that was news in this scenario. Engines pick among the inputs of all
// scenarios, and what is news in one means little in another.
const Input& Bursts::start_of_chain(const Input& input) {
  const std::vector<Input>& finds = finds_[static_cast<size_t>(loop_.scenario())];
  Rng& rng = loop_.rng();
  return finds.empty() || rng.one_in(2) ? input : finds[rng.below(finds.size())];
}

void Bursts::remember(const Input& input) {
  std::vector<Input>& finds = finds_[static_cast<size_t>(loop_.scenario())];
  if (finds.size() < kMostFinds) {
    finds.push_back(input);
  } else {
    finds[loop_.rng().below(finds.size())] = input;
  }
}

void Bursts::halted() {
  promising_.clear();
  novelty_.forget();
}

bool Bursts::take(Input* out) {
  if (promising_.empty()) return false;
  *out = std::move(promising_.back());
  promising_.pop_back();
  return true;
}

}  // namespace framestorm
