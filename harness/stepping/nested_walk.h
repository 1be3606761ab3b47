// A walk inside a walk: a signal interrupts it after some instructions, and its handler walks too.
//
//   Walker::walk of NestedWalk      the trap flag goes on
//     the walker's own walk
//       after n instructions   ──>  SIGTRAP: the walker walks again, from that trap's context
//     goes on at full speed    <──
//
// Or, first, HotSpot's handler of a fault at the given context is called, and interrupted so.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/jvm/jvm.h"
#include "harness/walkers/walker.h"

namespace framestorm::stepping {

class NestedWalk final : public Walker {
 public:
  // The walk that is made next is the outer one. Borrows all; `faulting`: of the handler that is
  // interrupted instead of the walk, null: none. `copies`: room for two copies of a JavaThread.
  // Async-signal-safe.
  NestedWalk(Walker& walker, uint64_t after, const Jvm* faulting, std::span<std::byte> copies);

  int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
               void* ucontext) noexcept override;
  const WalkFacts* facts() const override { return real_.facts(); }
  bool contains_faults() const override { return real_.contains_faults(); }

  // A single step of the walk. `frames`: of the inner one.
  void on_trap(ucontext_t* context, std::byte* frames);
  bool waits() const { return target_ != nullptr && !happened_; }
  bool happened() const { return happened_; }
  // Of the inner walk.
  int32_t result() const { return result_; }
  // The byte of the JavaThread that the outer walk had changed, as a flag that a walk goes on, and that the
  // inner one did not leave so. Bytes that change meanwhile may be another thread's doing.
  std::optional<size_t> taken_back() const { return taken_back_; }

 private:
  Walker& real_;
  uint64_t left_;
  const Jvm* const faulting_;
  const std::span<std::byte> before_, between_;  // the outer walk; the two
  const WalkTarget* target_ = nullptr;           // while it walks
  int32_t depth_ = 0, result_ = 0;
  bool happened_ = false;
  std::optional<size_t> taken_back_;
};

}  // namespace framestorm::stepping
