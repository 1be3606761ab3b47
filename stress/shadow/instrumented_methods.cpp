#include "stress/shadow/instrumented_methods.h"

#include <algorithm>
#include <array>
#include <utility>

namespace framestorm::stress {
namespace {

// What the VM calls by itself, wherever the caller stands: for a class's initialisation, to load it.
bool is_called_by_vm(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"<clinit>", "loadClass", "<init>", "run"};
  return std::ranges::find(kNames, name) != kNames.end();
}

std::string_view simple_name(std::string_view method) {
  return method.substr(method.rfind('.') + 1);
}

}  // namespace

int32_t InstrumentedMethods::number_of(std::string_view owner, std::string_view name,
                                       std::string_view descriptor) {
  const std::lock_guard lock(mutex_);
  std::string whole = std::string(owner) + "." + std::string(name);
  std::vector<int32_t>& same = by_name_[whole];
  for (const int32_t number : same) {
    if (methods_[static_cast<size_t>(number)].descriptor == descriptor) return number;
  }
  const auto number = static_cast<int32_t>(methods_.size());
  same.push_back(number);
  methods_.push_back({std::move(whole), std::string(descriptor), -1, {}, 0});
  return number;
}

void InstrumentedMethods::describe(int32_t number, int32_t push,
                                   std::map<int32_t, std::string> calls) {
  const std::lock_guard lock(mutex_);
  InstrumentedMethod& method = methods_[static_cast<size_t>(number)];
  if (method.versions != 0 && method.push == push && method.calls == calls) return;
  method.push = push;
  method.calls = std::move(calls);
  ++method.versions;
}

std::optional<int32_t> InstrumentedMethods::find(const std::string& name,
                                                 std::string_view descriptor) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  for (const int32_t number : found->second) {
    if (methods_[static_cast<size_t>(number)].descriptor == descriptor) return number;
  }
  return std::nullopt;
}

std::string InstrumentedMethods::name_of(int32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(number);
  return index < methods_.size() ? methods_[index].name : "?";
}

std::string InstrumentedMethods::why_not_called(int32_t caller, int32_t bci,
                                                std::string_view callee) const {
  const std::lock_guard lock(mutex_);
  const InstrumentedMethod& method = methods_[static_cast<size_t>(caller)];
  callee = simple_name(callee);
  if (method.versions != 1 || is_called_by_vm(callee)) return {};
  const auto call = method.calls.find(bci);
  if (call == method.calls.end()) return "no call";
  if (call->second.empty() || call->second == callee) return {};
  return "a call of " + call->second;
}

bool InstrumentedMethods::is_before_push(int32_t number, int32_t bci) const {
  const std::lock_guard lock(mutex_);
  return bci <= methods_[static_cast<size_t>(number)].push;
}

size_t InstrumentedMethods::count() const {
  const std::lock_guard lock(mutex_);
  return methods_.size();
}

}  // namespace framestorm::stress
