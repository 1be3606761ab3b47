// Inputs that kill a libjvm's mutants (harness/jvm/libjvm_mutants.h). Loop's stack.
#pragma once

#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "harness/executor/run_writer.h"
#include "harness/executor/session.h"
#include "harness/executor/signature.h"
#include "harness/jvm/libjvm_mutants.h"

namespace framestorm {

class MutantWalks final : LibjvmMutants::Walks {
 public:
  // All have to outlive it. Any thread; no walk is under way. Throws SetupError where libjvm has no mutants.
  MutantWalks(const std::filesystem::path& counts, Session& session, RunWriter& writer,
              Signatures& signatures);

  // Before the walk of an input, or the answer to one.
  void begin() { mutants_.begin(); }
  // After it, with the world halted. Coverage counters stay as they are. The process may not be reusable afterwards.
  void look(const Input& input, const Outcome& outcome);
  // After an answer at a poll (harness/executor/poll_answer.h), with the world released: where there is time, it is
  // halted again for each answer, and may be afterwards: where `input` says that its request was made, if the
  // thread comes there. `random`: for those halts.
  void look_at_answer(const Input& input, const Outcome& answer, uint64_t random);
  // Whether a mutant that is not in force any more has left something behind.
  bool spoiled() const { return mutants_.spoiled(); }

 private:
  void begin_try(size_t number) override;
  void end_try() override;
  std::vector<uint64_t> walk() override;
  uint64_t answer() const override { return session_.executor().last_answer(); }
  bool goes_on() const override { return !session_.executor().not_reusable(); }
  void killed(size_t number, uint64_t key) override;

  class Answers;

  std::vector<uint64_t> keys_of_found();

  LibjvmMutants mutants_;
  Session& session_;
  RunWriter& writer_;
  Signatures& signatures_;
  const Input* input_ = nullptr;
  size_t situation_ = 0;
  std::set<std::pair<size_t, size_t>> watched_;  // situation and number
  // Nanoseconds: since when mutants are tried, since when this one is, and for how long walks were watched, and
  // answers asked for.
  uint64_t began_ns_ = 0, try_ns_ = 0, watched_ns_ = 0, answers_ns_ = 0;
  bool watches_ = false;
  std::vector<Finding> found_;  // by the last walk
};

}  // namespace framestorm
