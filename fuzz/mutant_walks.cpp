#include "fuzz/mutant_walks.h"

#include <algorithm>

#include "harness/base/clock.h"
#include "harness/executor/poll_answer.h"

namespace framestorm {
namespace {

constexpr size_t kTriesOfInput = 8;
// Of what is not mutated more is known to be true.
constexpr size_t kTriesOfUnmutated = 64;
// A try walks some twenty times. Of a trace with so many frames that takes as long as a thousand other tries:
// there one mutant is tried, that was tried nowhere.
constexpr int32_t kDeep = 1000;
// Of the time, for tries whose walks are watched for writes: such a try takes as long as a hundred others.
constexpr uint64_t kWatchedShare = 4;
// The same for answers at polls, each of which has a halt of its own.
constexpr uint64_t kAnswersShare = 4;
constexpr size_t kTriesOfAnswer = 4;
// The thread answers at another poll in each halt, and is elsewhere if it does not come to where it was.
constexpr size_t kConfirmationsOfAnswer = 4;
constexpr int kMostHalts = 20;
// Halts that do not come to where they should: such a one takes as long as thousands of others.
constexpr int kMostMisses = 2;

size_t situation_of(const Input& input, const Outcome& outcome) {
  return 2 * static_cast<size_t>(input.scenario) + static_cast<size_t>(outcome.unmutated);
}

}  // namespace

// In force while the thread runs to a poll and answers there, and not while it is halted and its request is made.
class MutantWalks::Answers final : public LibjvmMutants::Walks {
 public:
  Answers(MutantWalks& mutants, const Input& input, uint64_t random)
      : mutants_(mutants),
        session_(mutants.session_),
        input_(input),
        halt_(input.halt),
        random_(random) {}

  void begin_try(size_t /*number*/) override {}
  void end_try() override {}
  // From halt to halt answers differ by themselves.
  uint64_t answer() const override { return 0; }
  size_t confirmations() const override { return kConfirmationsOfAnswer; }
  bool goes_on() const override { return !session_.executor().not_reusable(); }

  // A thread that is halted in the VM makes no request.
  void before_walk() override {
    walked_ = {};
    int misses = 0;
    for (int i = 0; i < kMostHalts && misses < kMostMisses && goes_on() && !was_made(); ++i) {
      bool is_there = false;
      session_.on_control_thread(
          [&] { is_there = session_.halt_world(input_.scenario, halt_, random_++).at_halt_point; });
      if (is_there) {
        walked_ = session_.executor().execute(input_);
      } else if (has_asked_) {
        ++misses;
      } else {
        halt_ = {};
      }
    }
    has_asked_ = has_asked_ || was_made();
  }
  bool was_made() const override { return walked_.has_request; }

  std::vector<uint64_t> walk() override {
    mutants_.found_.clear();
    if (goes_on() && walked_.has_request) {
      session_.on_control_thread(
          [&] { mutants_.found_ = answer_at_poll(session_, input_, walked_).findings; });
    }
    return mutants_.keys_of_found();
  }

  void killed(size_t number, uint64_t key) override { mutants_.killed(number, key); }

 private:
  MutantWalks& mutants_;
  Session& session_;
  const Input& input_;
  HaltPoint halt_;
  uint64_t random_;
  Outcome walked_;
  bool has_asked_ = false;
};

MutantWalks::MutantWalks(const std::filesystem::path& counts, Session& session, RunWriter& writer,
                         Signatures& signatures)
    : mutants_(counts),
      session_(session),
      writer_(writer),
      signatures_(signatures),
      began_ns_(monotonic_ns()) {}

void MutantWalks::look(const Input& input, const Outcome& outcome) {
  if (outcome.status != Outcome::Status::walked) return;
  if (!outcome.findings.empty()) {
    // The added walkers are known to have no bug; what has JFR walk has JFR's.
    const WalkerTraits& walker = traits_of(input.walker);
    if (mutants_.has_tried() && walker.is_added() && !walker.chooses_its_threads) mutants_.spoil();
    return;
  }
  Executor& executor = session_.executor();
  const Coverage::Aside aside(executor.coverage());
  const bool deep = outcome.result > kDeep;
  input_ = &input;
  executor.set_rigour(Rigour::everything);
  const size_t most = outcome.unmutated ? kTriesOfUnmutated : kTriesOfInput;
  situation_ = situation_of(input, outcome);
  mutants_.try_acting(*this, deep ? 1 : most, situation_, deep);
  executor.set_rigour(Rigour::per_walk);
}

void MutantWalks::look_at_answer(const Input& input, const Outcome& answer, uint64_t random) {
  const uint64_t begin_ns = monotonic_ns();
  const bool has_time = answers_ns_ * kAnswersShare <= begin_ns - began_ns_;
  if (!has_time || !answer.findings.empty()) return;
  const Coverage::Aside aside(session_.executor().coverage());
  Answers answers(*this, input, random);
  const size_t walked = 2 * kScenarios;  // situations of walks
  mutants_.try_acting(answers, kTriesOfAnswer, walked + situation_of(input, answer));
  answers_ns_ += monotonic_ns() - begin_ns;
}

// Once in each situation, as soon as there is time.
void MutantWalks::begin_try(size_t number) {
  try_ns_ = monotonic_ns();
  const bool has_time = watched_ns_ * kWatchedShare <= try_ns_ - began_ns_;
  watches_ = has_time && watched_.emplace(situation_, number).second;
  if (watches_) session_.executor().watch_writes(WriteWatching::Pace::each_walk);
}

void MutantWalks::end_try() {
  if (!watches_) return;
  session_.executor().watch_writes(WriteWatching::Pace::share_of_time);
  watched_ns_ += monotonic_ns() - try_ns_;
}

std::vector<uint64_t> MutantWalks::walk() {
  found_ = session_.executor().execute(*input_).findings;
  return keys_of_found();
}

std::vector<uint64_t> MutantWalks::keys_of_found() {
  std::vector<uint64_t> keys;
  keys.reserve(found_.size());
  for (const Finding& finding : found_) keys.push_back(signatures_.key_of(finding));
  return keys;
}

void MutantWalks::killed(size_t number, uint64_t key) {
  Finding killing = *std::ranges::find_if(
      found_, [&](const Finding& finding) { return signatures_.key_of(finding) == key; });
  killing.mutant = number;
  writer_.record(signatures_.key_of(killing), 0, killing, session_.executor().last_trace());
}

}  // namespace framestorm
