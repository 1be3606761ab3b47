// AFL++'s custom mutator (AFL_CUSTOM_MUTATOR_LIBRARY; docs/custom_mutators.md of AFL++): the
// targets' structure-aware mutator inside afl-fuzz, and the only one there
// (AFL_CUSTOM_MUTATOR_ONLY): havoc on encoded inputs spends its executions on the same few inputs.
//
// Environment: FRAMESTORM_TARGET names the target; FRAMESTORM_SCENARIOS and FRAMESTORM_MODES, comma
// separated, and FRAMESTORM_WALKER narrow it as --scenario, --mode and --walker do; FRAMESTORM_OUT
// is the target's output folder, where it leaves the names of the code that exists.
//
// The world is halted for one scenario at a time, and another one costs a millisecond. So an entry
// of AFL++'s queue is good for a round of kRound mutants with one scenario and mode: the entry's
// own or, one round in kMoveOneIn, any.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/code_names.h"
#include "fuzz/mutator.h"
#include "harness/input/binary.h"

namespace framestorm {
namespace {

constexpr uint32_t kRound = 512;
constexpr uint32_t kMoveOneIn = 2;
constexpr uint32_t kCrossOneIn = 8;
// Executions between looks for the names of code, until they are there.
constexpr uint32_t kNamesEvery = 1024;

template <typename Enum>
std::vector<Enum> listed(const char* variable, std::vector<Enum> otherwise) {
  const char* text = getenv(variable);
  std::istringstream names(text == nullptr ? "" : text);
  std::vector<Enum> found;
  for (std::string name; std::getline(names, name, ',');) {
    if (Enum one{}; parse_name(name, &one)) found.push_back(one);
  }
  return found.empty() ? std::move(otherwise) : found;
}

MutatorProfile profile_of_environment() {
  const char* target = getenv("FRAMESTORM_TARGET");
  const MutatorProfile* known = target == nullptr ? nullptr : find_mutator_profile(target);
  if (known == nullptr) {
    std::fprintf(stderr, "FRAMESTORM_TARGET=%s is not a fuzz target\n",
                 target == nullptr ? "" : target);
    std::exit(EXIT_FAILURE);
  }
  MutatorProfile profile = *known;
  profile.scenarios = listed("FRAMESTORM_SCENARIOS", profile.scenarios);
  profile.modes = listed("FRAMESTORM_MODES", profile.modes);
  profile.walkers = listed("FRAMESTORM_WALKER", profile.walkers);
  return profile;
}

class AflMutator {
 public:
  explicit AflMutator(uint64_t seed)
      : profile_(profile_of_environment()), mutator_(profile_, &names_), rng_(seed) {
    if (const char* out = getenv("FRAMESTORM_OUT")) {
      names_file_ = std::filesystem::path(out) / kCodeNamesFile;
    }
  }

  // Another entry of the queue: a new round.
  void next_entry() { pinned_ = false; }

  std::span<uint8_t> mutate(std::span<const uint8_t> entry, std::span<const uint8_t> other,
                            size_t max_size) {
    if (names_.empty() && looks_++ % kNamesEvery == 0) names_.load(names_file_);
    decode(entry, &input_);
    if (!pinned_) pin();
    if (!other.empty() && rng_.one_in(kCrossOneIn)) {
      decode(other, &other_);
      mutator_.crossover(input_, other_, &mutated_, rng_);
    } else {
      mutated_ = input_;
      mutator_.mutate(&mutated_, rng_);
    }
    encode(mutated_, &bytes_);
    if (bytes_.size() > max_size) bytes_.resize(max_size);
    return bytes_;
  }

 private:
  // The scenario and mode of input_, or others, for the round.
  void pin() {
    pinned_ = true;
    if (rng_.one_in(kMoveOneIn)) {
      mutator_.pin(profile_.scenarios[rng_.below(profile_.scenarios.size())],
                   profile_.modes[rng_.below(profile_.modes.size())]);
    } else {
      mutator_.pin(input_.scenario, input_.mode);
    }
  }

  MutatorProfile profile_;
  CodeNameList names_;
  std::filesystem::path names_file_;
  uint32_t looks_ = 0;
  Mutator mutator_;
  Rng rng_;
  bool pinned_ = false;
  Input input_, other_, mutated_;
  std::vector<uint8_t> bytes_;  // AFL++ uses them until the next call
};

AflMutator& of(void* data) { return *static_cast<AflMutator*>(data); }

}  // namespace
}  // namespace framestorm

// AFL++ owns what afl_custom_init returns until it calls afl_custom_deinit.
extern "C" {

void* afl_custom_init(void* /*afl*/, unsigned int seed) {
  return std::make_unique<framestorm::AflMutator>(seed).release();
}

uint8_t afl_custom_queue_get(void* data, const unsigned char* /*file*/) {
  framestorm::of(data).next_entry();
  return 1;
}

// Mutants of an entry in a row: one round.
unsigned int afl_custom_fuzz_count(void* /*data*/, const unsigned char* /*buffer*/,
                                   size_t /*size*/) {
  return framestorm::kRound;
}

size_t afl_custom_fuzz(void* data, uint8_t* buffer, size_t size, uint8_t** out, uint8_t* other,
                       size_t other_size, size_t max_size) {
  const auto mutated = framestorm::of(data).mutate({buffer, size}, {other, other_size}, max_size);
  *out = mutated.data();
  return mutated.size();
}

void afl_custom_deinit(void* data) {
  const std::unique_ptr<framestorm::AflMutator> mutator(&framestorm::of(data));
}
}
