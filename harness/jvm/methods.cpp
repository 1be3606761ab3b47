#include "harness/jvm/methods.h"

#include "harness/base/clock.h"

namespace framestorm {
namespace {

// A replaced method has its ID point elsewhere, of which no event tells.
constexpr uint64_t kRetakeIds = kSecond / 10;

}  // namespace

void MethodTable::add(jmethodID method, MethodInfo info) {
  const std::lock_guard lock(mutex_);
  pending_.emplace_back(method, std::move(info));
  has_pending_.store(true, std::memory_order_release);
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
  for (auto& [method, info] : pending_) {
    MethodInfo& known = methods_[method];
    info.first = known.first;
    known = std::move(info);
  }
  pending_.clear();
  has_pending_.store(false, std::memory_order_release);
}

jmethodID MethodTable::id_of(const void* method) {
  auto found = ids_.find(method);
  const uint64_t now = found == ids_.end() ? monotonic_ns() : 0;
  // One that was replaced may still run; or a new class's has come where it was.
  const bool current = found != ids_.end() && method_at(found->second) == method;
  const bool late = found == ids_.end() && now - ids_taken_ns_ > kRetakeIds;
  if (ids_stale_ || late || (!current && ids_of_ != methods_.size())) {
    for (auto& [id, info] : methods_) {
      const void* const at = method_at(id);
      if (at == nullptr) continue;
      ids_[at] = id;
      if (info.first == nullptr) info.first = at;
    }
    ids_of_ = methods_.size();
    ids_taken_ns_ = now;
    ids_stale_ = false;
    found = ids_.find(method);
  }
  return found == ids_.end() || method_at(found->second) == nullptr ? nullptr : found->second;
}

bool MethodTable::is_replaced(jmethodID id) const {
  const MethodInfo* const info = find(id);
  return info != nullptr && info->first != nullptr && info->first != method_at(id);
}

const MethodInfo* MethodTable::find(jmethodID method) const {
  const auto it = methods_.find(method);
  return it == methods_.end() ? nullptr : &it->second;
}

}  // namespace framestorm
