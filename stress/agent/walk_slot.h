// A slot for one walk at a time: frame buffers that end at guard pages, records of what happened,
// and what the costly oracles compare the walk with. Everything is there before the first signal.
//
// A handler cannot allocate and the oracles do, so the work is divided: the slot makes all walks
// that the oracles will ask for and keeps their answers while the thread stands still; the judge has
// the oracles look at them later (judge.h).
#pragma once

#include <sys/types.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "harness/jvm/jvm.h"
#include "harness/oracles/oracle_set.h"
#include "harness/walk/run_walk.h"
#include "harness/walkers/plugin.h"
#include "stress/agent/options.h"
#include "stress/agent/sample.h"
#include "stress/agent/sample_subject.h"
#include "stress/agent/signal_stack.h"
#include "stress/agent/walking_file.h"

namespace framestorm::stress {

// Bytes of the largest frame that a walker has.
inline constexpr size_t kLargestFrame = 40;

// What all slots share; outlives them.
struct WalkSetup {
  Jvm* jvm = nullptr;
  const OracleSet* oracles = nullptr;
  const WalkResidue* residue = nullptr;
  std::vector<WalkerId> walkers;     // asked for
  std::vector<WalkerId> comparable;  // that this JVM has and that walk in this mode
  std::shared_ptr<Plugin> plugin;    // every slot has an adapter of it
  SamplingMode mode = SamplingMode::same_thread;
  int32_t depth = 0;
  bool strict = false;
  bool truth = false;  // samples have their threads' shadow stacks
};

// What stress offers oracles: the victim has gone on, and nobody knows what it should have run.
Needs offered_needs();
// Of that, what there is of a walk that was made for oracles: its frames are not guarded.
Needs further_needs(const OracleSet& oracles);

// GetStackTrace's frames beside a walk of a check.
inline constexpr jint kReferenceDepth = kMaxSampleDepth;

struct WalkRequest {
  WalkerId walker = kDefaultWalker;
  bool costly = false;
  bool again = false;  // walked again once, and only where that differs a costly sample
  uint64_t number = 0;
  uint32_t thread = 0;
  WalkTarget target;  // its options and masks are the slot's
  const ucontext_t* context = nullptr;
  const ShadowStack* shadow = nullptr;
  ShadowState shadow_state = ShadowState::not_asked;
};

// A walk of the same victim made for oracles.
struct Rewalk {
  FurtherWalk walk;
  WalkRecord record;
};

class WalkSlot {
 public:
  // What oracles ask for, and two that tell whether the VM went on.
  static constexpr size_t kMaxRewalks = FurtherWalks::kCapacity + 2;
  static constexpr size_t kMaxStackCopy = size_t{256} << 10;

  // `walking` tells of the walk that is made here. Throws SetupError, std::system_error.
  WalkSlot(const WalkSetup& setup, WalkingRecord* walking);
  ~WalkSlot();
  WalkSlot(const WalkSlot&) = delete;
  WalkSlot& operator=(const WalkSlot&) = delete;

  // Takes the slot; false when somebody has it. Async-signal-safe, as release() and walk() are.
  bool try_take() {
    bool expected = false;
    return !taken_.load(std::memory_order_relaxed) &&
           taken_.compare_exchange_strong(expected, true, std::memory_order_acquire);
  }
  void release() { taken_.store(false, std::memory_order_release); }

  // For the thread that walks, where that is the target's own; but not where one of the walkers
  // recovers from faults by itself, as with Guard::walk_on_one_stack().
  SignalStack& signal_stack() { return signal_stack_; }
  bool recovers_from_faults() const { return recovers_from_faults_; }

  // Walks, contained, and walks again where the sample is a costly one, or becomes one. On the target's thread, or
  // on another one while it is halted. Leaves sample(), frames() and the records.
  void walk(const WalkRequest& request);

  // Keeps the first kStackWindow bytes of the stack from sp up; before the victim goes on.
  void copy_window();
  const std::byte* window() const { return window_.data(); }
  const ShadowEntry* shadow() const { return shadow_.data(); }
  // What GetStackTrace said in the same call, of a check's walk. The caller's to fill.
  std::vector<jvmtiFrameInfo>& reference() { return reference_; }
  const std::vector<jvmtiFrameInfo>& reference() const { return reference_; }

  const Sample& sample() const { return sample_; }
  Sample& sample() { return sample_; }
  const std::byte* frames() const { return sample_.walk.frames; }
  // Of the sample and of the rewalks; not in signal context.
  void resolve_methods();
  const Walker* walker(WalkerId id) const { return walkers_[static_cast<size_t>(id)]; }
  std::span<const Rewalk> rewalks() const { return {rewalks_.data(), rewalk_count_}; }
  // Whether such a walk was to be made here; it was not where one before it went wrong.
  bool was_asked_for(const FurtherWalk& walk) const { return offers(walk) && asked_.has(walk); }
  // Whether a rewalk did wrong by itself: the last one, since after it there was none.
  bool rewalk_went_wrong() const { return rewalk_went_wrong_; }
  // Whether oracles may compare the rewalks with the walk. Only the victim stands still: a
  // collection may end between two walks, a method lose its ID. What changed once, and stayed, is
  // the VM's doing where the thread is outside Java. For one in Java a safepoint waits.
  bool is_comparable() const { return rewalk_count_ != 0 && !vm_went_on_; }
  // The stack from sp up, as much as was there or fitted; of costly and suspicious samples.
  std::span<const std::byte> stack() const { return {stack_, stack_size_}; }

 private:
  void run(const WalkRequest& request, const FurtherWalk& walk, std::byte* frames,
           WalkRecord* record, Incidents* incidents);
  bool offers(const FurtherWalk& walk) const;
  bool rewalk(const WalkRequest& request, const WalkView& first, const FurtherWalk& walk);
  void rewalk_all(const WalkRequest& request, const WalkView& view);
  bool is_alike_again(const WalkRequest& request, const WalkView& view);
  void see_whether_vm_went_on(const WalkRequest& request, const WalkView& view,
                              const FurtherWalk& again);
  void note_thread(const WalkRequest& request);
  // As many bytes above the sp as there are, up to so many.
  size_t copy_stack(std::byte* to, size_t most) const;
  void note_walking(uint32_t rewalks);

  const WalkSetup& setup_;
  WalkingRecord* const walking_;
  std::atomic<bool> taken_{false};
  Guard::Watch watch_;
  SignalStack signal_stack_;
  std::array<Walker*, static_cast<size_t>(WalkerId::count)> walkers_ = {};
  std::vector<std::unique_ptr<Walker>> owned_;
  std::array<std::unique_ptr<FrameBuffer>, static_cast<size_t>(WalkerId::count)> buffers_;
  Sample sample_;
  SampleSubject subject_;
  ucontext_t context_;
  ucontext_t expected_;
  uint64_t mask_ = 0;  // signals::mask() before the walk
  Incidents incidents_;
  FurtherWalks asked_;
  std::array<Rewalk, kMaxRewalks> rewalks_;
  size_t rewalk_count_ = 0;
  size_t rewalk_used_ = 0;
  bool rewalk_went_wrong_ = false, vm_went_on_ = false;
  bool recovers_from_faults_ = false;  // one of the walkers
  std::vector<std::byte> rewalk_memory_;
  Incidents rewalk_incidents_;
  std::byte* stack_;
  size_t stack_size_ = 0;
  std::array<std::byte, kStackWindow> window_;
  std::vector<ShadowEntry> shadow_;
  std::vector<jvmtiFrameInfo> reference_;
};

}  // namespace framestorm::stress
