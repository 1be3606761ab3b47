#include "stress/agent/flames.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <sstream>
#include <string>

#include "harness/executor/run_files.h"
#include "harness/victim/scenario.h"

namespace framestorm::stress {
namespace {

const char* suffix_of(FrameType type, int8_t tier) {
  switch (type) {
    case FrameType::interpreted:
      return "_[0]";
    case FrameType::compiled:
      return "_[j]";
    case FrameType::java:
      return tier == 0 ? "_[0]" : tier > 0 ? "_[j]" : "";
    case FrameType::inlined:
      return "_[i]";
    case FrameType::native:
      return "_[n]";
    case FrameType::cpp:
      return "_[c]";
    case FrameType::stub:
      return "_[s]";
    case FrameType::none:
    case FrameType::invalid:
      return "";
  }
  return "";
}

std::string_view name_without_method(FrameType type) {
  if (type == FrameType::cpp) return "native";
  if (type == FrameType::stub) return "stub";
  return type == FrameType::native ? kUnnamedNative : "?";
}

std::string name_of(jmethodID method, FrameType type, int8_t tier, const MethodTable& methods) {
  const MethodInfo* const info = method == nullptr ? nullptr : methods.find(method);
  std::string name(info != nullptr ? info->name : name_without_method(type));
  std::ranges::replace(name, '/', '.');
  std::ranges::replace(name, ';', '_');
  return name + suffix_of(type, tier);
}

// The tree with names: several versions of a method are one.
struct Named {
  uint64_t all = 0, ends = 0, other = 0;
  std::map<std::string, Named> callees;
};

class Writer {
 public:
  Writer(std::ostream& file, uint64_t least) : file_(file), least_(least) {}

  // Not recursive: traces are deep.
  void write(const Named& root) {
    struct Level {
      const Named* node;
      std::map<std::string, Named>::const_iterator next;
      uint64_t other;
      size_t length;  // of the callers' names
    };
    std::vector<Level> levels = {{&root, root.callees.begin(), root.other, 0}};
    while (!levels.empty()) {
      Level& level = levels.back();
      if (level.next == level.node->callees.end()) {
        line("", level.node->ends);
        line("[other]", level.other);
        stack_.resize(level.length);
        levels.pop_back();
        continue;
      }
      const auto& [name, callee] = *level.next++;
      if (callee.all < least_ && levels.size() > 1) {
        level.other += callee.all;
        continue;
      }
      const size_t length = stack_.size();
      if (!stack_.empty()) stack_ += ';';
      stack_ += name;
      levels.push_back({&callee, callee.callees.begin(), callee.other, length});
    }
  }

 private:
  void line(std::string_view last, uint64_t count) {
    if (count == 0) return;
    file_ << stack_ << (stack_.empty() || last.empty() ? "" : ";") << last << ' ' << count << '\n';
  }

  std::ostream& file_;
  const uint64_t least_;
  std::string stack_;
};

}  // namespace

size_t Flames::Hash::operator()(const Key& key) const {
  constexpr size_t kFactor = 0x9e3779b97f4a7c15U;
  size_t hash = (key.caller ^ reinterpret_cast<size_t>(key.method)) * kFactor;
  hash ^= static_cast<size_t>(key.type) + (hash >> 29);
  return (hash ^ static_cast<uint8_t>(key.tier)) * kFactor;
}

void Flames::add(std::span<const Frame> trace) {
  uint32_t at = 0;
  for (const Frame& frame : trace | std::views::reverse) {
    const Key key = {at, frame.method, frame.type, frame.tier};
    const auto found = found_.find(key);
    if (found != found_.end()) {
      at = found->second;
    } else if (nodes_.size() < most_nodes_) {
      at = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({key});
      found_.emplace(key, at);
    } else {
      ++nodes_[at].other;
      return;
    }
  }
  ++nodes_[at].ends;
}

void Flames::write(const std::filesystem::path& path, const MethodTable& methods) const {
  Named root;
  // A node comes after its caller.
  std::vector<Named*> named = {&root};
  root.other = nodes_.front().other;
  for (const Node& node : nodes_ | std::views::drop(1)) {
    const auto& [caller, method, type, tier] = node.key;
    Named& here = named[caller]->callees[name_of(method, type, tier, methods)];
    here.ends += node.ends;
    here.other += node.other;
    named.push_back(&here);
  }
  std::vector<uint64_t> below(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    const uint64_t all = nodes_[i].ends + nodes_[i].other + below[i];
    named[i]->all += all;
    if (i != 0) below[nodes_[i].key.caller] += all;
  }
  std::ostringstream lines;
  Writer(lines, std::max<uint64_t>(1, root.all / kNarrowest)).write(root);
  write_file(path, lines.view());
}

}  // namespace framestorm::stress
