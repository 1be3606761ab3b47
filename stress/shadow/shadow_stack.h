// Shadow stacks: which instrumented methods a thread is in, as these say themselves on entry and
// exit (java/, README.md). Memory that Java code writes and a signal handler reads.
//
// One writer, the logical thread itself, and readers that look while it stands still: its own
// handler, or a sampler that has halted it. An entry is in its place before the depth says so, and
// x86 as well as the hand-over of a halted thread keep that order, so whatever a reader finds is the
// stack of one moment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace framestorm::stress {

// A method that was entered and has not returned. The serial number is one for each entry of a
// thread: the same entry seen twice has not returned in between.
struct ShadowEntry {
  int32_t method = 0;  // number of InstrumentedMethods
  uint32_t serial = 0;
  bool operator==(const ShadowEntry&) const = default;
};
static_assert(sizeof(ShadowEntry) == 8);

// Java code knows the offsets (Shadow.java).
struct alignas(64) ShadowStack {
  static constexpr int64_t kNobody = -1;
  static constexpr int32_t kFirstCapacity = 1024;

  int64_t owner = kNobody;         // java.lang.Thread.tid
  ShadowEntry* entries = nullptr;  // outermost first
  int32_t depth = 0;
  int32_t limit = 0;  // a push at this depth goes the slow way
  uint32_t serial = 0;
  int32_t is_virtual = 0;
  int32_t capacity = 0;
  // That the next push is to be a check of its thread's stack (request_check).
  std::atomic<bool> check_due{false};

  // In a signal handler, of a thread that stands still, as is the next: the innermost entries,
  // innermost first; returns how deep the stack is.
  uint32_t copy(std::span<ShadowEntry> into) const {
    const auto deep = static_cast<uint32_t>(depth);
    for (uint32_t i = 0; i < deep && i < into.size(); ++i) into[i] = entries[deep - 1 - i];
    return deep;
  }
  void request_check() {
    check_due.store(true, std::memory_order_relaxed);
    limit = 0;
  }
};

// All shadow stacks of the process. What says nothing else: any thread, not in signal context.
class ShadowStacks {
 public:
  ShadowStacks();

  // Where Java code finds a stack by its thread's number. There is always one.
  uint64_t table() const { return reinterpret_cast<uint64_t>(table_.data()); }
  // The stack of a logical thread; made when it has none. On that thread.
  ShadowStack& take(int64_t thread, bool is_virtual);
  // Null when it has none.
  ShadowStack* find(int64_t thread);
  // A thread that ends, or is in no instrumented method any more. On that thread.
  void release(int64_t thread);
  // What a push does that does not go the fast way. On the stack's thread. Returns the depth before.
  static int32_t push(ShadowStack& stack, int32_t method);

  struct Totals {
    size_t live = 0, made = 0;
    uint64_t bytes = 0;
  };
  Totals totals();

 private:
  static constexpr size_t kTable = size_t{1} << 16;

  void publish(ShadowStack& stack);

  std::mutex mutex_;
  std::vector<ShadowStack*> table_;
  ShadowStack nobodys_;
  std::deque<ShadowStack> stacks_;  // none is ever freed: Java code may look at it
  std::vector<ShadowStack*> free_;
  std::unordered_map<int64_t, ShadowStack*> by_thread_;
};

}  // namespace framestorm::stress
