// For how long a sampled thread has been waiting, as far as its samples tell.
#pragma once

#include <atomic>
#include <cstdint>

namespace framestorm::stress {

// Of one thread. Times in ns, of the same clock. Async-signal-safe; one caller of note() at a time.
class Waiting {
 public:
  // One that has waited for long will for long. A wait loses this share of its length of what
  // follows it, at most.
  static constexpr uint64_t kRestShare = 16;

  // A sample found it waiting, or not. Returns for how long it may be left alone, as it has been
  // waiting for so much longer.
  uint64_t note(bool waiting, uint64_t now) {
    const uint64_t since = since_.load(std::memory_order_relaxed);
    if (!waiting || since == 0) {
      since_.store(waiting ? now : 0, std::memory_order_relaxed);
      last_ = now;
      return 0;
    }
    total_.fetch_add(now - last_, std::memory_order_relaxed);
    last_ = now;
    return (now - since) / kRestShare;
  }

  // Between samples that found it waiting, one after the other. Any thread.
  uint64_t total() const { return total_.load(std::memory_order_relaxed); }

  // It is not being sampled, though a last sample may be on its way.
  void forget() {
    since_.store(0, std::memory_order_relaxed);
    total_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> since_{0};  // 0: it is not waiting
  uint64_t last_ = 0;
  std::atomic<uint64_t> total_{0};
};

}  // namespace framestorm::stress
