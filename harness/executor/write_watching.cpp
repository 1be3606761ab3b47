#include "harness/executor/write_watching.h"

#include "harness/base/clock.h"

namespace framestorm {
namespace {

// Others keep their result in what the VM has allocated.
bool gives_all_to_its_caller(const Walker& walker) {
  const WalkerTraits& traits = walker.traits();
  return !traits.needs_running_vm && !traits.at_polls_only && !traits.queue_calls &&
         !traits.acts_on_threads && !traits.keeps_its_traces && !walker.keeps_state_in_thread();
}

}  // namespace

WriteWatch* WriteWatching::prepare(const Walker& walker, const Victim& victim, uint64_t observed) {
  const bool each = pace_ == Pace::each_walk;
  if ((!each && walked_at_ == observed) || !gives_all_to_its_caller(walker)) return nullptr;
  walked_at_ = observed;
  if (!each) {
    const uint64_t now = monotonic_ns();
    if (now - last_ns_ < kShareOfTime * watch_.ns()) return nullptr;
    last_ns_ = now;
  }
  if (prepared_at_ != observed) {
    const Module* const libjvm = addresses_.modules().by_name("libjvm.so");
    if (libjvm == nullptr) return nullptr;
    const auto [low, high] = jvm_.code_map().code_cache();
    watch_.prepare({libjvm->text_begin, libjvm->text_end}, {low, high});
    prepared_at_ = observed;
  }
  const auto thread = reinterpret_cast<uintptr_t>(victim.java_thread);
  watch_.exempt({thread, thread + jvm_.layout().java_thread_size});
  return &watch_;
}

}  // namespace framestorm
