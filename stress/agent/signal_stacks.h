// Alternate signal stacks for sampled threads, so that a walk that overflows its thread's stack is
// contained: the walk runs on the thread's own stack, where a profiler's would, and only the
// fault's handler here. A thread without one is sampled all the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace framestorm::stress {

class SignalStacks {
 public:
  static constexpr size_t kStacks = 4096;
  static constexpr size_t kBytes = size_t{64} << 10;

  // Throws std::system_error.
  SignalStacks();
  ~SignalStacks();
  SignalStacks(const SignalStacks&) = delete;
  SignalStacks& operator=(const SignalStacks&) = delete;

  // Gives the calling thread one, unless it has one already or none is left. Async-signal-safe, not
  // on a signal stack.
  void give();
  // Takes it back, on the same thread, if it has one of these.
  void take_back();

 private:
  std::byte* memory_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
  std::atomic<size_t> next_{0};
};

}  // namespace framestorm::stress
