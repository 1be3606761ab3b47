#include "harness/jvm/methods.h"

namespace framestorm {

void MethodTable::add(jmethodID method, MethodInfo info) {
  const std::lock_guard lock(mutex_);
  pending_.emplace_back(method, std::move(info));
}

void MethodTable::absorb() {
  const std::lock_guard lock(mutex_);
  take_pending();
}

bool MethodTable::try_absorb() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) take_pending();
  return lock.owns_lock();
}

void MethodTable::take_pending() {
  for (auto& [method, info] : pending_) methods_[method] = std::move(info);
  pending_.clear();
}

const MethodInfo* MethodTable::find(jmethodID method) const {
  const auto it = methods_.find(method);
  return it == methods_.end() ? nullptr : &it->second;
}

}  // namespace framestorm
