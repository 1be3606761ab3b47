// Memory of queues for a walk in a signal handler, which may not allocate: guarded, counted, and
// without room when it is told to.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "harness/walkers/queue_model.h"

namespace framestorm {

class QueueMemory {
 public:
  void reset() {
    used_ = blocks_ = live_ = 0;
    overrun_ = wrong_release_ = 0;
    allocation_.reset();
  }
  FailingAllocation& allocation() { return allocation_; }

  void* allocate(size_t bytes) {
    if (allocation_.next_fails()) return nullptr;
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (blocks_ == list_.size() || used_ + size + kGuard > room_.size()) return nullptr;
    std::byte* const begin = room_.data() + used_;
    list_[blocks_++] = {begin, size, true};
    std::ranges::fill(std::span(begin, size), kFresh);
    std::ranges::fill(std::span(begin + size, kGuard), kUntouched);
    used_ += size + kGuard;
    ++live_;
    return begin;
  }
  void release(void* memory) {
    const auto all = std::span(list_).first(blocks_);
    const auto found = std::ranges::find(all, memory, &Block::begin);
    if (found == all.end() || !found->live) {
      ++wrong_release_;
      return;
    }
    check(*found);
    found->live = false;
    --live_;
    // What still uses it shall notice.
    std::ranges::fill(std::span(found->begin, found->size), kReleased);
    while (blocks_ > 0 && !list_[blocks_ - 1].live) {
      --blocks_;
      used_ = static_cast<size_t>(list_[blocks_].begin - room_.data());
    }
  }

  // Of blocks: still there, written behind their ends, released that were none.
  size_t live() const { return live_; }
  size_t overrun() const { return overrun_; }
  size_t wrong_release() const { return wrong_release_; }

 private:
  static constexpr size_t kAlignment = 16;
  static constexpr size_t kGuard = 64;
  static constexpr auto kFresh = std::byte{0xf5};
  static constexpr auto kReleased = std::byte{0xde};
  static constexpr auto kUntouched = std::byte{0x5a};

  struct Block {
    std::byte* begin;
    size_t size;
    bool live;
  };
  void check(const Block& block) {
    const auto guard = std::span(block.begin + block.size, kGuard);
    if (!std::ranges::all_of(guard, [](std::byte one) { return one == kUntouched; })) ++overrun_;
  }

  alignas(kAlignment) std::array<std::byte, size_t{1} << 18> room_;
  std::array<Block, 128> list_;
  size_t used_ = 0;
  size_t blocks_ = 0;
  size_t live_ = 0;
  size_t overrun_ = 0;
  size_t wrong_release_ = 0;
  FailingAllocation allocation_;
};

}  // namespace framestorm
