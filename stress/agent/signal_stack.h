// An alternate signal stack, so that a walk that overflows its thread's stack is contained: the
// walk runs on the thread's own stack, where a profiler's would, and only the fault's handler here.
#pragma once

#include <signal.h>

#include <cstddef>

namespace framestorm::stress {

class SignalStack {
 public:
  // As the guard's own have: a signal frame, and HotSpot's handler below it.
  static constexpr size_t kBytes = size_t{128} << 10;

  // Throws std::system_error.
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

  // The calling thread's while it lasts, unless the thread has one of its own. For one sample: the
  // kernel undoes at a handler's end what the handler said of signal stacks (rt_sigreturn).
  // Async-signal-safe; not on a signal stack.
  class Lent {
   public:
    explicit Lent(const SignalStack& stack);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    stack_t before_ = {};
  };

 private:
  std::byte* memory_;
};

}  // namespace framestorm::stress
