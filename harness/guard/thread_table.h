// A fixed table of the threads that own something of the guard. Async-signal-safe, lock-free.
#pragma once

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace framestorm {

// Threads need not release their entry: when the table is full, entries of dead threads are reused.
template <size_t kSize>
class ThreadTable {
 public:
  static constexpr size_t kNone = kSize;

  // The entry of thread `tid`, taken for it if it has none; kNone when all are held by live
  // threads.
  size_t claim(int tid) {
    const size_t own = find(tid);
    if (own != kNone && retake(own, tid)) {
      return own;
    }
    for (size_t i = 0; i < kSize; ++i) {
      uint64_t free_entry = entries_[i].load(std::memory_order_acquire);
      if (tid_of(free_entry) == 0 && take(i, free_entry, tid)) {
        return i;
      }
    }
    const int saved_errno = errno;
    size_t found = kNone;
    for (size_t i = 0; i < kSize && found == kNone; ++i) {
      const uint64_t entry = entries_[i].load(std::memory_order_acquire);
      if (syscall(SYS_tgkill, getpid(), tid_of(entry), 0) != 0 && errno == ESRCH &&
          take(i, entry, tid)) {
        found = i;
      }
    }
    errno = saved_errno;
    return found;
  }

  size_t find(int tid) const {
    for (size_t i = 0; i < kSize; ++i) {
      if (tid_at(i) == tid) {
        return i;
      }
    }
    return kNone;
  }

  void release(size_t index) {
    const uint64_t entry = entries_[index].load(std::memory_order_relaxed);
    entries_[index].store(next_generation(entry), std::memory_order_release);
  }

  // 0: free.
  int tid_at(size_t index) const { return tid_of(entries_[index].load(std::memory_order_acquire)); }

 private:
  // generation << 32 | tid. The generation makes two claims of one entry exclude each other even
  // when a dead owner's tid is in use again.
  static int tid_of(uint64_t entry) { return static_cast<int>(entry & 0xffffffffU); }
  static uint64_t next_generation(uint64_t entry) { return ((entry >> 32) + 1) << 32; }

  bool take(size_t index, uint64_t expected, int tid) {
    return entries_[index].compare_exchange_strong(
        expected, next_generation(expected) | static_cast<uint32_t>(tid),
        std::memory_order_acq_rel);
  }

  // An entry with this thread's id may be a dead namesake's that another thread is about to reuse.
  bool retake(size_t index, int tid) {
    const uint64_t entry = entries_[index].load(std::memory_order_acquire);
    return tid_of(entry) == tid && take(index, entry, tid);
  }

  std::array<std::atomic<uint64_t>, kSize> entries_ = {};
};

}  // namespace framestorm
