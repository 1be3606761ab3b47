// Walkers for tests: a right one, which is AsyncGetCallTrace with more to look at in its frames,
// and whatever a test makes of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

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

  FakeWalker(Walker* real, Body body) : real_(real), body_(body) {}

  WalkerId id() const override { return WalkerId::plugin; }
  std::string_view description() const override { return "a walker of a test"; }
  const FrameLayout& layout() const override { return kLayout; }
  bool documented_error(int32_t code) const override { return real_->documented_error(code); }
  std::string_view error_name(int32_t code) const override { return real_->error_name(code); }
  bool error_agrees(int32_t code, uint32_t state) const override {
    return real_->error_agrees(code, state);
  }
  int32_t lowest_bci() const override { return real_->lowest_bci(); }
  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override {
    return body_({real_, &target, reinterpret_cast<FakeFrame*>(frames), depth,
                  static_cast<ucontext_t*>(ucontext)});
  }

 private:
  static constexpr FrameLayout kLayout = {sizeof(FakeFrame), offsetof(FakeFrame, method),
                                          offsetof(FakeFrame, bci), -1, offsetof(FakeFrame, sp)};
  Walker* real_;
  Body body_;
};

}  // namespace framestorm::jvm_test
