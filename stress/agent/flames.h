// The traces of a run as one tree of callers and callees. One thread's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <vector>

#include "harness/jvm/methods.h"
#include "harness/walkers/walker.h"

namespace framestorm::stress {

class Flames {
 public:
  // What is narrower than this share of all samples is too narrow to be drawn, and is its caller's
  // `[other]`: real programs have hundreds of thousands of different traces, a hundred frames each.
  // Outermost frames stay, since they tell whole traces from broken ones.
  static constexpr uint64_t kNarrowest = 10'000;
  static constexpr size_t kMostNodes = 500'000;

  explicit Flames(size_t most_nodes = kMostNodes) : most_nodes_(most_nodes) {}

  // A trace, its innermost frame first.
  void add(std::span<const Frame> trace);
  // Collapsed stacks, a line each, outermost frame first. Throws std::system_error.
  void write(const std::filesystem::path& path, const MethodTable& methods) const;

 private:
  // Methods, not places in them.
  struct Key {
    uint32_t caller;
    jmethodID method;
    FrameType type;
    int8_t tier;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Node {
    Key key = {};
    uint64_t ends = 0;   // traces whose innermost frame it is
    uint64_t other = 0;  // traces that go on where there was no room for another node
  };

  const size_t most_nodes_;
  std::vector<Node> nodes_ = {Node{}};  // the first is outside of all traces
  std::unordered_map<Key, uint32_t, Hash> found_;
};

}  // namespace framestorm::stress
