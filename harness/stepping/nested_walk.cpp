#include "harness/stepping/nested_walk.h"

#include "harness/victim/context.h"

namespace framestorm::stepping {

NestedWalk::NestedWalk(Walker& walker, uint64_t after)
    : Walker(walker.traits()), real_(walker), left_(after) {}

int32_t NestedWalk::walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                         void* ucontext) noexcept {
  depth_ = depth;
  target_ = &target;
  start_single_step();
  const int32_t result = real_.walk(target, frames, depth, ucontext);
  target_ = nullptr;  // the next trap ends the stepping
  return result;
}

void NestedWalk::on_trap(ucontext_t* context, std::byte* frames) {
  if (left_-- > 0) return;
  happened_ = true;
  result_ = real_.walk(*target_, frames, depth_, context);
}

}  // namespace framestorm::stepping
