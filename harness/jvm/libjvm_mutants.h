// Which mutants of a libjvm a walk kills, for `framestorm detect`. libjvm has all of them and counts,
// while none is in force, where each would act (harness/hotspot/planted/canary, which says what the file
// of counts holds). A walk that makes some act is made again with one of them in force at a time:
//
//   none in force, found nothing  ->  in force, found F  ->  none, no F  ->  in force, F again  ->  killed
//                                                            these two as often as is asked
//   none in force, found nothing  ->  in force           ->  none, found something              ->  killed
//
// In the second case it has left something behind, as in the methods that a walker has proven, and another
// process has to go on. Where several were tried by then, each is tried alone from now on.
//
// One thread at a time: in fuzzing the loop, the world halted; in stepping the stepped thread in its trap
// handler, while the JVM's other threads run, which meet a mutant that is in force, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

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
    uint32_t differed;  // of them, those in which the walk answered otherwise than without it
    Fate fate;
  } tried[kMost];
};

class LibjvmMutants {
 public:
  // How a driver walks again.
  class Walks {
   public:
    virtual ~Walks() = default;
    // The walks that follow try this one.
    virtual void begin_try(size_t number) = 0;
    // Those that follow try none.
    virtual void end_try() = 0;
    // Before each walk, while none is in force.
    virtual void before_walk() {}
    // The same walk once more. The keys of what that finds.
    virtual std::vector<uint64_t> walk() = 0;
    // What the last walk answered: the same number for the same.
    virtual uint64_t answer() const = 0;
    // How often in a row a walk has to find something with a mutant in force, and nothing with none: where
    // other threads run meanwhile, two walks may differ by chance.
    virtual size_t confirmations() const { return 1; }
    // Whether the last walk was made: what was not made and finds nothing says nothing.
    virtual bool was_made() const { return true; }
    // Whether another walk may follow the last one.
    virtual bool goes_on() const = 0;
    // What the last walk found by this key shows that the mutant is killed.
    virtual void killed(size_t number, uint64_t key) = 0;
  };

  // Any thread; no walk is under way. Throws SetupError where libjvm has no mutants.
  explicit LibjvmMutants(const std::filesystem::path& counts);
  ~LibjvmMutants();
  LibjvmMutants(const LibjvmMutants&) = delete;
  LibjvmMutants& operator=(const LibjvmMutants&) = delete;

  // Before a walk with none in force.
  void begin();
  // After it, where it found nothing: tries `most` of the mutants that it made act, those first that were tried
  // least. What makes walks differ for a mutant is its `situation`, a small number: in each it is tried so often
  // that there is time for others.
  // `new_only`: of those that were tried nowhere.
  void try_acting(Walks& walks, size_t most, size_t situation, bool new_only = false);
  // Whether one that is not in force any more may have left something behind, when a walk that should find
  // nothing found something.
  bool has_tried() const { return tried_; }
  // Another process has to go on.
  void spoil() { spoiled_ = true; }
  bool spoiled() const { return spoiled_; }

 private:
  std::vector<uint8_t>& tries_in(size_t situation);
  std::vector<size_t> to_try(size_t most, const std::vector<uint8_t>& tries, bool new_only);
  // `unmutated`: the answer with none in force.
  void try_one(size_t number, uint64_t unmutated, Walks& walks);
  void look_behind(const std::vector<size_t>& tried, Walks& walks);
  void kill(size_t number, uint64_t key, Walks& walks);
  std::vector<uint64_t> walk(size_t number, Walks& walks);

  LibjvmMutantFile* file_;
  std::vector<uint64_t> acted_;              // by number: how often, before the walk
  std::vector<std::vector<uint8_t>> tries_;  // by situation and number
  bool tried_ = false;
  bool spoiled_ = false;
};

}  // namespace framestorm
