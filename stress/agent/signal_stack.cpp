#include "stress/agent/signal_stack.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace framestorm::stress {
namespace {

constexpr size_t kGuardPage = 4096;

}  // namespace

SignalStack::SignalStack() {
  void* const memory = mmap(nullptr, kGuardPage + kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping a signal stack");
  }
  memory_ = static_cast<std::byte*>(memory);
  mprotect(memory, kGuardPage, PROT_NONE);
}

SignalStack::~SignalStack() { munmap(memory_, kGuardPage + kBytes); }

SignalStack::Lent::Lent(const SignalStack& stack) {
  stack_t lent = {};
  lent.ss_sp = stack.memory_ + kGuardPage;
  lent.ss_size = kBytes;
  sigaltstack(&lent, &before_);
  if ((before_.ss_flags & SS_DISABLE) == 0) sigaltstack(&before_, nullptr);
}

SignalStack::Lent::~Lent() {
  if ((before_.ss_flags & SS_DISABLE) != 0) sigaltstack(&before_, nullptr);
}

}  // namespace framestorm::stress
