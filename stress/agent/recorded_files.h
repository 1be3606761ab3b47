// Both files of recorded_truth.h, read.
#pragma once

#include <cstdint>
#include <istream>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/jvm/code_map.h"
#include "stress/agent/sample.h"
#include "stress/shadow/trace_frames.h"

namespace framestorm::stress {

// A call of a profiler's handler.
struct Handler {
  int64_t begin_ns = 0, end_ns = 0;
  ShadowState state = ShadowState::there;
  uint32_t depth = 0;
  size_t stack = 0;
  bool may_lack_innermost = false;
  std::string kind, place;
  int64_t code = -1;
};

// Methods of compiled code and of traces, which are compared with each other only, by the name.
class MethodNames {
 public:
  jmethodID id(std::string_view name) {
    return reinterpret_cast<jmethodID>(const_cast<std::string*>(&*names_.emplace(name).first));
  }
  static const std::string& name(jmethodID id) { return *reinterpret_cast<std::string*>(id); }

 private:
  std::set<std::string> names_;
};

// A sample that a profiler recorded.
struct Sampled {
  int tid = 0;
  int64_t java_id = 0;
  int64_t ticks = 0;
  int64_t trace = -1;
  bool biased = false;
};

struct Trace {
  bool cut = false;
  std::vector<std::string> texts;  // of its frames
  std::vector<std::string> names;  // of its Java frames, as the next
  std::vector<NamedFrame> frames;
  std::vector<DebugInfo::JavaFrame> plain;  // the same
  std::vector<TraceFrame> instrumented;
  bool of_continuation = false;
};

// What the observer noted. Throws std::runtime_error.
class Shadows {
 public:
  explicit Shadows(std::istream& file);

  const InstrumentedMethods& methods() const { return methods_; }
  const std::vector<int32_t>& stack(size_t id) const { return stacks_.at(id); }
  const DebugInfo* code(int64_t id) const {
    return id < 0 ? nullptr : &codes_.at(static_cast<size_t>(id));
  }
  MethodNames& names() { return names_; }
  uint64_t lost() const { return lost_; }
  const std::vector<std::pair<int64_t, int64_t>>& clock() const { return clock_; }
  // In the order of time; null where it has none.
  const std::vector<Handler>* of(const Sampled& sample) const {
    const auto& by = sample.tid != 0 ? by_tid_ : by_owner_;
    const auto found = by.find(sample.tid != 0 ? sample.tid : sample.java_id);
    return found == by.end() ? nullptr : &found->second;
  }

 private:
  using Fields = std::vector<std::string_view>;
  static void put_in_order(std::vector<Handler>* handlers);
  void read(const Fields& fields);
  void read_method(const Fields& fields);
  void read_code(const Fields& fields);

  InstrumentedMethods methods_;
  MethodNames names_;
  std::vector<jmethodID> ids_;
  std::vector<DebugInfo> codes_;
  std::vector<std::vector<int32_t>> stacks_;
  std::unordered_map<int64_t, std::vector<Handler>> by_tid_, by_owner_;
  std::vector<std::pair<int64_t, int64_t>> clock_;
  uint64_t lost_ = 0;
};

// What the profiler recorded. Throws std::runtime_error.
class Recorded {
 public:
  Recorded(std::istream& file, const InstrumentedMethods& methods, MethodNames& names);

  const std::vector<Sampled>& samples() const { return samples_; }
  const Trace* trace(int64_t id) const {
    return id < 0 ? nullptr : &traces_.at(static_cast<size_t>(id));
  }

 private:
  void read(const std::vector<std::string_view>& fields);
  NamedFrame frame_of(std::string_view text, bool is_adjacent, Trace* trace);

  const InstrumentedMethods& methods_;
  MethodNames& names_;
  std::vector<Trace> traces_;
  std::vector<Sampled> samples_;
};

}  // namespace framestorm::stress
