// Walkers for tests: a right one, which is AsyncGetCallTrace with more to look at in its frames,
// and whatever a test makes of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/victim/context.h"
#include "harness/walkers/walker.h"

namespace framestorm::jvm_test {

struct FakeFrame {
  jmethodID method;
  uintptr_t sp;
  int32_t bci;
};

// The arguments of one walk, and the real walker.
struct FakeWalk {
  Walker* real = nullptr;
  const WalkTarget* target = nullptr;
  FakeFrame* frames = nullptr;
  int32_t depth = 0;
  ucontext_t* context = nullptr;

  // A right walk: AsyncGetCallTrace's frames, with made-up advancing stack pointers.
  int32_t right() const { return right(frames, depth); }
  int32_t right(FakeFrame* out, int32_t to_depth) const {
    struct RealFrame {
      jint bci;
      jmethodID method;
    };
    static std::array<RealFrame, kCapacity> buffer;
    const int32_t count = real->walk(*target, reinterpret_cast<std::byte*>(buffer.data()),
                                     std::min(to_depth, kCapacity), context);
    for (int32_t i = 0; i < count; ++i) {
      const RealFrame& frame = buffer[static_cast<size_t>(i)];
      out[i] = {frame.method, 0x1000 + 16 * static_cast<uintptr_t>(i), frame.bci};
    }
    return count;
  }

  static constexpr int32_t kCapacity = 4096;
};

// Registers as `plugin`, which no other walker is in a test's executor.
class FakeWalker final : public Walker {
 public:
  // In a walk: async-signal-safe, but for what the test is about.
  using Body = int32_t (*)(const FakeWalk&);

  FakeWalker(Walker* real, Body body) : Walker(kTraits), real_(real), body_(body) {}

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    return body_({real_, &target, reinterpret_cast<FakeFrame*>(frames), depth,
                  static_cast<ucontext_t*>(ucontext)});
  }

 private:
  static constexpr WalkerTraits traits_of_fake() {
    WalkerTraits traits = traits_of(WalkerId::plugin);
    const WalkerTraits& real = traits_of(WalkerId::asgct);
    traits.layout = {.stride = sizeof(FakeFrame),
                     .method = offsetof(FakeFrame, method),
                     .bci = offsetof(FakeFrame, bci),
                     .sp = offsetof(FakeFrame, sp)};
    traits.errors = real.errors;
    traits.other_errors = real.other_errors;
    traits.lowest_bci = real.lowest_bci;
    return traits;
  }
  static const WalkerTraits kTraits;
  Walker* real_;
  Body body_;
};

inline constexpr WalkerTraits FakeWalker::kTraits = FakeWalker::traits_of_fake();

// As JFR's, of a thread in Java: its walk gives no trace and notes a request. What it answers a test says.
class AnsweringWalker : public Walker {
 public:
  static constexpr int32_t kWrongState = -3;

  AnsweringWalker() : Walker(*std::ranges::find_if(kWalkers, &WalkerTraits::at_polls_only)) {}

  int32_t walk(const WalkTarget&, std::byte*, int32_t, void*) noexcept override {
    return kWrongState;
  }
  bool has_request() const override { return true; }
};

}  // namespace framestorm::jvm_test
