// The slots that walks are made in, and a sample's way from there to the judge. Everything is there
// before the first signal; what is called in handlers is async-signal-safe.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "stress/agent/options.h"
#include "stress/agent/registry.h"
#include "stress/agent/sample_ring.h"
#include "stress/agent/walk_slot.h"
#include "stress/agent/walking_file.h"

namespace framestorm::stress {

class Slots {
 public:
  // Walks at one time, and samples that are judged closely at one time.
  static constexpr size_t kCount = 64;
  static constexpr size_t kRingCells = 8192;

  // Throws SetupError, std::system_error.
  Slots(const Options& options, WalkSetup setup);

  SampleRing& ring() { return ring_; }
  WalkSlot& at(size_t index) { return *slots_[index]; }
  const WalkSlot& at(size_t index) const { return *slots_[index]; }

  // A slot for a sample of a thread, its own until it is handed over or released. Empty, and
  // counted as lost, when all are taken.
  class Taken {
   public:
    explicit operator bool() const { return slot_ != nullptr; }
    WalkSlot* operator->() const { return slot_; }
    WalkSlot& operator*() const { return *slot_; }

   private:
    friend class Slots;
    WalkSlot* slot_ = nullptr;
    int32_t index_ = -1;
  };
  Taken take(SampledThread& thread);
  // Hands a slot's sample to the judge: with the slot when that is needed, else by copy.
  void hand_over(const Taken& taken, SampledThread& thread);

  // What a sample of the thread asks a slot to walk; numbers it. `same_thread`: the thread itself
  // walks.
  WalkRequest request_for(SampledThread& thread, const ucontext_t& context, bool same_thread);
  // One that is made at a check, from the thread itself: by a walker that can; its number is 0 where none
  // can.
  WalkRequest check_for(SampledThread& thread, const ucontext_t& context);

 private:
  const Options& options_;
  const WalkSetup setup_;
  WalkingFile walking_;
  std::vector<std::unique_ptr<WalkSlot>> slots_;
  SampleRing ring_;
  WalkRequest request(SampledThread& thread, const ucontext_t& context, bool same_thread,
                      WalkerId walker) const;

  uint64_t check_period_ = 1;      // one sample in so many has a check after it
  std::vector<WalkerId> checked_;  // those that walk the thread that calls them
  std::atomic<uint64_t> numbers_{0};
  std::atomic<uint64_t> checks_{0};
};

}  // namespace framestorm::stress
