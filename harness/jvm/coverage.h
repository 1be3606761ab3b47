// The coverage of an instrumented libjvm: one counter and one pc per edge of the walker sources
// (SanitizerCoverage inline-8bit-counters and pc-table; harness/hotspot says which sources).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace framestorm {

class Jvm;

class Coverage {
 public:
  // Of a pc table.
  struct Edge {
    uintptr_t pc = 0;
    uintptr_t flags = 0;
    bool is_function_entry() const { return (flags & 1U) != 0; }
  };

  Coverage() = default;
  // As the libjvm exports it (framestorm_coverage); empty where there is none.
  explicit Coverage(const Jvm& jvm);
  // Over counters of somebody else, for tests.
  explicit Coverage(std::span<uint8_t> counters) : counters_(counters) {}

  bool available() const { return !counters_.empty(); }
  std::span<uint8_t> counters() const { return counters_; }
  // As many as counters, in their order.
  std::span<const Edge> edges() const { return edges_; }

  // Before an input's walk: libjvm's walkers forget what walks before it taught them (the methods
  // they have proven), which would change what this one covers. Async-signal-safe.
  void begin_walk() const {
    if (forget_methods_ != nullptr) forget_methods_();
  }

  // Counters as they are now, put back when it goes: what happens meanwhile (a second walk by an
  // oracle, the world running between two halts) is not the input's doing. Scopes may be nested.
  // Any stack; allocates, so not in signal context outside the loop.
  class Aside {
   public:
    explicit Aside(Coverage& coverage);
    ~Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    Coverage& coverage_;
  };

 private:
  std::span<uint8_t> counters_;
  std::span<const Edge> edges_;
  void (*forget_methods_)() = nullptr;
  std::vector<std::vector<uint8_t>> kept_;  // one per scope, kept for the next
  size_t scopes_ = 0;
};

// The distinct edges that executions have reached so far. One thread at a time.
class ReachedEdges {
 public:
  // Takes in the counters of one execution, which were all zero before it. As many each time.
  void note(std::span<const uint8_t> counters);
  // Indexes of the edges noted since the last call for the first time, ascending.
  std::vector<uint32_t> take_new();
  // How many take_new() has given so far.
  size_t count() const { return taken_; }

 private:
  std::vector<uint8_t> noted_;  // by edge: nonzero once it was reached
  std::vector<bool> known_;     // by edge: was given
  size_t taken_ = 0;
};

}  // namespace framestorm
