#include "harness/stepping/nested_walk.h"

#include <cstring>

#include "harness/victim/context.h"

namespace framestorm::stepping {

namespace {

// As for a wild pointer: HotSpot looks for polls, guard pages and implicit checks, and finds none. It
// must not find one: it would log that under a lock, which a walk that faults would leave behind.
constexpr uintptr_t kWild = ~uintptr_t{0xfff};

void fault(const Jvm& jvm, const ucontext_t& where) {
  ucontext_t context;
  copy_context(where, &context);
  siginfo_t info = {};
  info.si_signo = SIGSEGV;
  info.si_code = SEGV_MAPERR;
  info.si_addr = reinterpret_cast<void*>(kWild);
  jvm.handle_fault(SIGSEGV, &info, &context);
}

}  // namespace

NestedWalk::NestedWalk(Walker& walker, uint64_t after, const Jvm* faulting,
                       std::span<std::byte> copies)
    : Walker(walker.traits()),
      real_(walker),
      left_(after),
      faulting_(faulting),
      before_(copies.first(copies.size() / 2)),
      between_(copies.subspan(before_.size())) {}

int32_t NestedWalk::walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                         void* ucontext) noexcept {
  depth_ = depth;
  target_ = &target;
  std::memcpy(before_.data(), target.java_thread, before_.size());
  start_single_step();
  if (faulting_ != nullptr) {
    fault(*faulting_, *static_cast<const ucontext_t*>(ucontext));
    target_ = nullptr;
  }
  const int32_t result = real_.walk(target, frames, depth, ucontext);
  target_ = nullptr;  // the next trap ends the stepping
  return result;
}

void NestedWalk::on_trap(ucontext_t* context, std::byte* frames) {
  if (left_-- > 0) return;
  happened_ = true;
  const auto* const thread = static_cast<const std::byte*>(target_->java_thread);
  std::memcpy(between_.data(), thread, between_.size());
  result_ = real_.walk(*target_, frames, depth_, context);
  for (size_t i = 0; i < between_.size() && !taken_back_; ++i) {
    if (between_[i] != before_[i] && thread[i] != between_[i]) taken_back_ = i;
  }
}

}  // namespace framestorm::stepping
