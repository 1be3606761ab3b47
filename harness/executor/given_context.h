#pragma once

#include <ucontext.h>

#include <cstddef>

#include "harness/input/input.h"
#include "harness/victim/context.h"

namespace framestorm {

// The context that a walker is given.
class GivenContext {
 public:
  void set(const ucontext_t& from, ContextArg how) {
    context_ = reinterpret_cast<ucontext_t*>(memory_ + (how == ContextArg::misaligned ? 1 : 0));
    copy_context(from, context_);
    if (how == ContextArg::null) context_ = nullptr;
  }
  ucontext_t* get() const { return context_; }

 private:
  // Room for one at an odd address.
  alignas(ucontext_t) std::byte memory_[sizeof(ucontext_t) + 8];
  ucontext_t* context_ = nullptr;
};

}  // namespace framestorm
