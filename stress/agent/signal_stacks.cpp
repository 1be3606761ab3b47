#include "stress/agent/signal_stacks.h"

#include <signal.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace framestorm::stress {

SignalStacks::SignalStacks() : taken_(std::make_unique<std::atomic<bool>[]>(kStacks)) {
  void* const memory = mmap(nullptr, kStacks * kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping signal stacks");
  }
  memory_ = static_cast<std::byte*>(memory);
}

SignalStacks::~SignalStacks() { munmap(memory_, kStacks * kBytes); }

void SignalStacks::give() {
  stack_t current = {};
  if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
  for (size_t tried = 0; tried < kStacks; ++tried) {
    const size_t index = next_.fetch_add(1, std::memory_order_relaxed) % kStacks;
    bool expected = false;
    if (!taken_[index].compare_exchange_strong(expected, true)) continue;
    stack_t stack = {};
    stack.ss_sp = memory_ + index * kBytes;
    stack.ss_size = kBytes;
    if (sigaltstack(&stack, nullptr) != 0) taken_[index].store(false);
    return;
  }
}

void SignalStacks::take_back() {
  stack_t current = {};
  if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) != 0) return;
  auto* const begin = static_cast<std::byte*>(current.ss_sp);
  if (begin < memory_ || begin >= memory_ + kStacks * kBytes) return;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  if (sigaltstack(&none, nullptr) != 0) return;
  taken_[static_cast<size_t>(begin - memory_) / kBytes].store(false);
}

}  // namespace framestorm::stress
