// Which mutants of a libjvm an input kills, for `framestorm detect`. libjvm has all of them and counts,
// while none is in force, where each would act (harness/hotspot/planted/canary, which says what the file
// of counts holds). An input that makes some act is walked again with one of them in force at a time:
//
//   none in force, found nothing  ->  in force, found F  ->  none, no F  ->  in force, F again  ->  killed
//   none in force, found nothing  ->  in force           ->  none, found F                     ->  killed
//
// In the second case it has left something behind, as in what a walker keeps of libraries' unwind tables, and
// another process has to go on. Where several were tried by then, each is tried alone from now on.
//
// Loop's stack, world halted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "harness/executor/run_writer.h"
#include "harness/executor/session.h"
#include "harness/executor/signature.h"

namespace framestorm {

// scripts/framestorm_cli/detect/canary.py and framestorm_canary.cpp have the same. A mutant's number is
// its index, from 1.
struct LibjvmMutantFile {
  static constexpr size_t kMost = 8192;
  static constexpr int64_t kNone = -1;
  enum Fate : uint8_t { kOpen, kKilled, kDied, kSuspect };

  uint64_t reached, triggered, first_reached, first_triggered;
  int64_t in_force;
  uint64_t count;
  struct {
    uint64_t reached, acted;
  } counts[kMost];
  // libjvm knows nothing of the rest.
  uint64_t trying;  // which is in force; 0: none. Where the process died, that killed it
  struct {
    uint32_t tries;
    Fate fate;
  } tried[kMost];
};

class LibjvmMutants {
 public:
  // All have to outlive it. Any thread; no walk is under way. Throws SetupError where libjvm has no mutants.
  LibjvmMutants(const std::filesystem::path& counts, Session& session, RunWriter& writer,
                Signatures& signatures);
  ~LibjvmMutants();
  LibjvmMutants(const LibjvmMutants&) = delete;
  LibjvmMutants& operator=(const LibjvmMutants&) = delete;

  // Before the walk of an input.
  void begin();
  // After it. Coverage counters stay as they are. The process may not be reusable afterwards.
  void look(const Input& input, const Outcome& outcome);
  // Whether one that is not in force any more has left something behind.
  bool spoiled() const { return spoiled_; }

 private:
  bool is_worth_a_try(size_t number) const;
  std::vector<size_t> to_try(bool deep);
  void try_one(size_t number, const Input& input);
  void look_behind(const std::vector<size_t>& tried, const Input& input);
  void kill(size_t number, const Finding& finding, const std::vector<NamedFrame>& trace);
  Outcome walk(size_t number, const Input& input);
  bool finds(uint64_t key, const Outcome& outcome);

  Session& session_;
  RunWriter& writer_;
  Signatures& signatures_;
  LibjvmMutantFile* file_;
  std::vector<uint64_t> acted_;  // by number: how often, before the walk
  size_t next_ = 0;              // who is tried first
  bool tried_ = false;
  bool spoiled_ = false;
};

}  // namespace framestorm
