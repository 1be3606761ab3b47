#include "stress/shadow/shadow_stack.h"

#include <algorithm>

namespace framestorm::stress {

static_assert(offsetof(ShadowStack, owner) == 0 && offsetof(ShadowStack, entries) == 8 &&
              offsetof(ShadowStack, depth) == 16 && offsetof(ShadowStack, limit) == 20 &&
              offsetof(ShadowStack, serial) == 24 && offsetof(ShadowStack, is_virtual) == 28);

ShadowStacks::ShadowStacks() : table_(kTable, &nobodys_) {}

void ShadowStacks::publish(ShadowStack& stack) {
  // Another thread may have the place: whoever is not found there asks here, and takes it.
  std::atomic_ref(table_[static_cast<size_t>(stack.owner) % kTable])
      .store(&stack, std::memory_order_release);
}

ShadowStack& ShadowStacks::take(int64_t thread, bool is_virtual) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_thread_.find(thread); found != by_thread_.end()) {
    publish(*found->second);
    return *found->second;
  }
  ShadowStack* stack = nullptr;
  if (free_.empty()) {
    stack = &stacks_.emplace_back();
    stack->capacity = ShadowStack::kFirstCapacity;
    stack->entries = new ShadowEntry[static_cast<size_t>(stack->capacity)];
  } else {
    stack = free_.back();
    free_.pop_back();
  }
  stack->depth = 0;
  stack->limit = stack->capacity;
  stack->is_virtual = is_virtual ? 1 : 0;
  stack->check_due.store(false, std::memory_order_relaxed);
  stack->owner = thread;
  by_thread_[thread] = stack;
  publish(*stack);
  return *stack;
}

ShadowStack* ShadowStacks::find(int64_t thread) {
  const std::lock_guard lock(mutex_);
  const auto found = by_thread_.find(thread);
  return found == by_thread_.end() ? nullptr : found->second;
}

void ShadowStacks::release(int64_t thread) {
  const std::lock_guard lock(mutex_);
  const auto found = by_thread_.find(thread);
  if (found == by_thread_.end()) return;
  ShadowStack* const stack = found->second;
  by_thread_.erase(found);
  stack->owner = ShadowStack::kNobody;
  stack->depth = 0;
  free_.push_back(stack);
}

int32_t ShadowStacks::push(ShadowStack& stack, int32_t method) {
  const int32_t depth = stack.depth;
  if (depth == stack.capacity) {
    auto* const larger = new ShadowEntry[static_cast<size_t>(depth) * 2];
    std::copy_n(stack.entries, depth, larger);
    ShadowEntry* const former = stack.entries;
    std::atomic_ref(stack.entries).store(larger, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    stack.capacity = depth * 2;
    // Nobody reads while this thread runs.
    delete[] former;
  }
  stack.limit = stack.capacity;
  stack.entries[depth] = {method, ++stack.serial};
  std::atomic_ref(stack.depth).store(depth + 1, std::memory_order_release);
  return depth;
}

ShadowStacks::Totals ShadowStacks::totals() {
  const std::lock_guard lock(mutex_);
  Totals totals = {.live = by_thread_.size(), .made = stacks_.size()};
  for (const ShadowStack& stack : stacks_) {
    totals.bytes += static_cast<uint64_t>(stack.capacity) * sizeof(ShadowEntry);
  }
  return totals;
}

}  // namespace framestorm::stress
