#include "stress/agent/slots.h"

#include <utility>

namespace framestorm::stress {
namespace {

// One sample in so many is walked again once.
constexpr uint64_t kAgainShare = 16;

}  // namespace

Slots::Slots(const Options& options, WalkSetup setup)
    : options_(options),
      setup_(std::move(setup)),
      walking_(options.out / "walking.bin", kCount),
      ring_(kRingCells, static_cast<size_t>(options.depth) * (kLargestFrame + sizeof(ShadowEntry)) +
                            kStackWindow + 2 * sizeof(ShadowEntry)) {
  // Without a common factor: the walkers take turns, and each is to have its checks.
  check_period_ = options.checks - options.checks % setup_.walkers.size() + 1;
  for (const WalkerId id : setup_.walkers) {
    if (options_.truth && traits_of(id).same_thread) checked_.push_back(id);
  }
  for (size_t i = 0; i < kCount; ++i) {
    slots_.push_back(std::make_unique<WalkSlot>(setup_, walking_.record(i)));
  }
}

Slots::Taken Slots::take(SampledThread& thread) {
  Taken taken;
  for (size_t i = 0; i < kCount; ++i) {
    const size_t at = (thread.index + i) % kCount;
    if (!slots_[at]->try_take()) continue;
    taken.slot_ = slots_[at].get();
    taken.index_ = static_cast<int32_t>(at);
    return taken;
  }
  thread.lose(LostCause::buffer_full);
  return taken;
}

void Slots::hand_over(const Taken& taken, SampledThread& thread) {
  Sample& sample = taken->sample();
  if (ShadowStack* const shadow = thread.shadow.load(std::memory_order_acquire);
      shadow != nullptr && options_.checks != 0 && !sample.at_safepoint &&
      sample.number % check_period_ == 0) {
    shadow->request_check();
    sample.sandwiched = true;
  }
  const bool keep = sample.suspicious || sample.costly || sample.at_safepoint;
  sample.slot = keep ? taken.index_ : -1;
  const bool pushed = ring_.push(sample, taken->frames(), taken->window(), taken->shadow());
  if (!pushed) thread.lose(LostCause::unjudged);
  if (!pushed || !keep) taken->release();
}

WalkRequest Slots::request(SampledThread& thread, const ucontext_t& context, bool same_thread,
                           WalkerId walker) const {
  WalkRequest request;
  request.walker = walker;
  request.thread = thread.index;
  request.target.java_thread = thread.java_thread;
  request.target.jni_env = thread.jni_env;
  request.target.tid = request.target.asked_tid = thread.tid.load(std::memory_order_relaxed);
  request.target.same_thread = same_thread;
  request.target.stack_base = thread.stack_base;
  request.target.stack_end = thread.stack_end;
  request.context = &context;
  if (options_.truth) {
    request.shadow = thread.shadow.load(std::memory_order_acquire);
    request.shadow_state = thread.mounted.load()   ? ShadowState::mounted
                           : thread.carries.load() ? ShadowState::of_carrier
                                                   : ShadowState::there;
  }
  return request;
}

WalkRequest Slots::request_for(SampledThread& thread, const ucontext_t& context, bool same_thread) {
  const uint64_t number = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
  WalkRequest made =
      request(thread, context, same_thread, setup_.walkers[number % setup_.walkers.size()]);
  made.number = number;
  made.costly = options_.costly != 0 && number % options_.costly == 0;
  made.again =
      options_.costly != 0 && options_.mode != SamplingMode::unstopped && number % kAgainShare == 0;
  return made;
}

WalkRequest Slots::check_for(SampledThread& thread, const ucontext_t& context) {
  if (checked_.empty()) return {};
  const uint64_t number = checks_.fetch_add(1, std::memory_order_relaxed) + 1;
  WalkRequest made =
      request(thread, context, /*same_thread=*/true, checked_[number % checked_.size()]);
  made.number = number;
  return made;
}

}  // namespace framestorm::stress
