// The methods that push themselves on shadow stacks: their numbers, and what their bytecode says of
// their calls.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace framestorm::stress {

struct InstrumentedMethod {
  std::string name;        // "pkg/Class.method"
  std::string descriptor;  // "(I)V"
  // Where it pushes itself: for a constructor that is behind its call of super() or this().
  int32_t push = -1;
  // Bytecode index of each call, and the name of what is called; empty where the bytecode does not say.
  std::map<int32_t, std::string> calls;
  // Of how many class files: a class that was replaced may have indices of its own.
  uint32_t versions = 0;
};

// Any thread, not in signal context.
class InstrumentedMethods {
 public:
  // The number of a method, the same for the same name in whatever loader's class.
  int32_t number_of(std::string_view owner, std::string_view name, std::string_view descriptor);
  void describe(int32_t number, int32_t push, std::map<int32_t, std::string> calls);

  std::optional<int32_t> find(const std::string& name, std::string_view descriptor) const;
  std::string name_of(int32_t number) const;
  // Empty where this is a call that a method of that name can come of, or nothing is known of it; else
  // what stands there.
  std::string why_not_called(int32_t caller, int32_t bci, std::string_view callee) const;
  // Whether a frame of it that stands there has yet to push itself, or is at it.
  bool is_before_push(int32_t number, int32_t bci) const;
  size_t count() const;
  // With its number, each of them.
  template <typename Function>
  void for_each(Function function) const {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < methods_.size(); ++i) function(static_cast<int32_t>(i), methods_[i]);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<InstrumentedMethod> methods_;
  std::unordered_map<std::string, std::vector<int32_t>> by_name_;
};

}  // namespace framestorm::stress
