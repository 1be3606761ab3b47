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
      ring_(kRingCells, static_cast<size_t>(options.depth) * kLargestFrame + kStackWindow) {
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
  const bool keep = sample.suspicious || sample.costly;
  sample.slot = keep ? taken.index_ : -1;
  const bool pushed = ring_.push(sample, taken->frames(), taken->window());
  if (!pushed) thread.lose(LostCause::unjudged);
  if (!pushed || !keep) taken->release();
}

WalkRequest Slots::request_for(const SampledThread& thread, const ucontext_t& context,
                               bool same_thread) {
  WalkRequest request;
  request.number = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
  request.walker = setup_.walkers[request.number % setup_.walkers.size()];
  request.costly = options_.costly != 0 && request.number % options_.costly == 0;
  request.again = options_.costly != 0 && options_.mode != SamplingMode::unstopped &&
                  request.number % kAgainShare == 0;
  request.thread = thread.index;
  request.target.java_thread = thread.java_thread;
  request.target.jni_env = thread.jni_env;
  request.target.tid = request.target.asked_tid = thread.tid.load(std::memory_order_relaxed);
  request.target.same_thread = same_thread;
  request.target.stack_base = thread.stack_base;
  request.target.stack_end = thread.stack_end;
  request.context = &context;
  return request;
}

}  // namespace framestorm::stress
