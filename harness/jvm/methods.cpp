#include "harness/jvm/methods.h"

#include <algorithm>
#include <cstddef>

#include "harness/base/clock.h"

namespace framestorm {
namespace {

// A replaced method has its ID point elsewhere, of which no event tells.
constexpr uint64_t kRetakeIds = kSecond / 10;

const void* find_none(jmethodID) { return nullptr; }

}  // namespace

void MethodTable::set_look_up(LookUp look_up) {
  look_up_ = look_up != nullptr ? look_up : &find_none;
}

bool MethodTable::finds_methods() const { return look_up_ != &find_none; }

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
    newest_ = std::max(newest_, reinterpret_cast<uintptr_t>(method));
  }
  pending_.clear();
  has_pending_.store(false, std::memory_order_release);
}

void MethodTable::take_ids() {
  for (auto& [id, info] : methods_) {
    const void* const at = method_at(id);
    if (at == nullptr) continue;
    Known& known = ids_[at];
    if (known.id != id) known = {.id = id};
    if (info.first == nullptr) info.first = at;
  }
  ids_of_ = methods_.size();
  ids_stale_ = false;
}

const void* MethodTable::mark_of(const void* method) const {
  return mark_ == 0
             ? nullptr
             : *reinterpret_cast<const void* const*>(static_cast<const std::byte*>(method) + mark_);
}

jmethodID MethodTable::id_of(const void* method) {
  const auto is_current = [this, method](const auto& known) {
    return method_at(known.id) == method;
  };
  auto found = ids_.find(method);
  const uint64_t now = found == ids_.end() ? monotonic_ns() : 0;
  // One that was replaced may still run; or another one has come where it was.
  const bool current = found != ids_.end() && is_current(found->second);
  const bool replaced = !current && found != ids_.end() && method_at(found->second.id) != nullptr;
  const bool another = replaced && found->second.mark != mark_of(method);
  const bool never_asked = another && found->second.mark == nullptr;
  const bool late = found == ids_.end() && now - ids_taken_ns_ > kRetakeIds;
  if (ids_stale_ || late || another || (!current && ids_of_ != methods_.size())) {
    take_ids();
    ids_taken_ns_ = now;
    found = ids_.find(method);
  }
  if (found == ids_.end() || method_at(found->second.id) == nullptr) return nullptr;
  if (another && !never_asked && !is_current(found->second)) {
    ids_.erase(found);
    return nullptr;
  }
  found->second.mark = mark_of(method);
  return found->second.id;
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
