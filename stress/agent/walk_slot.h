// A slot for one walk at a time: frame buffers that end at guard pages, records of what happened,
// and what the costly oracles compare the walk with. Everything is there before the first signal.
//
// A handler cannot allocate and the oracles do, so the work is divided: the slot makes all walks
// and keeps their answers while the thread stands still; the judge has the oracles look at them
// later (judge.h).
#pragma once

#include <sys/types.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "harness/executor/frame_buffer.h"
#include "harness/guard/guard.h"
#include "harness/jvm/jvm.h"
#include "harness/jvm/walk_residue.h"
#include "harness/walkers/walker.h"
#include "stress/agent/options.h"
#include "stress/agent/sample.h"
#include "stress/agent/signal_stack.h"
#include "stress/agent/walking_file.h"

namespace framestorm::stress {

// What all slots share; outlives them.
struct WalkSetup {
  const Jvm* jvm = nullptr;
  const WalkResidue* residue = nullptr;
  std::vector<WalkerId> walkers;     // asked for
  std::vector<WalkerId> comparable;  // that this JVM has and that walk in this mode
  std::shared_ptr<Walker> plugin;    // shared by all slots: it is told to start once
  SamplingMode mode = SamplingMode::same_thread;
  int32_t depth = 0;
  bool strict = false;
};

struct WalkRequest {
  WalkerId walker = WalkerId::asgct;
  bool costly = false;
  uint64_t number = 0;
  uint32_t thread = 0;
  WalkTarget target;  // its options and masks are the slot's
  const ucontext_t* context = nullptr;
  bool borrow_identity = false;  // the walking thread is not the target's
};

// A walk of the same victim made for a costly oracle.
struct Rewalked {
  WalkerId walker = WalkerId::asgct;
  int32_t depth = 0;
  uint32_t options = 0;
  WalkEnd end = WalkEnd::returned;
  int32_t result = 0;
  size_t frames = 0;  // offset in WalkSlot::rewalk_frames
  bool has_facts = false;
  WalkFacts facts;
};

class WalkSlot {
 public:
  static constexpr size_t kMaxRewalks = 16;
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

  // For the thread that walks, where that is the target's own.
  SignalStack& signal_stack() { return signal_stack_; }

  // Walks, contained, and walks again where the sample is a costly one. On the target's thread, or
  // on another one while it is halted. Leaves sample(), frames() and the records.
  void walk(const WalkRequest& request);

  // Keeps the first kStackWindow bytes of the stack from sp up; before the victim goes on.
  void copy_window();
  const std::byte* window() const { return window_.data(); }

  const Sample& sample() const { return sample_; }
  Sample& sample() { return sample_; }
  const std::byte* frames() const { return frames_; }
  const Walker* walker(WalkerId id) const { return walkers_[static_cast<size_t>(id)]; }
  FrameBuffer* buffer(WalkerId id) const { return buffers_[static_cast<size_t>(id)].get(); }
  const ucontext_t& context() const { return context_; }
  const ucontext_t& expected_context() const { return expected_; }
  const FaultRecord& fault() const { return fault_; }
  const UnsafeCalls& unsafe() const { return unsafe_; }
  const SanitizerReports& reports() const { return reports_; }
  std::span<const Rewalked> rewalks() const { return {rewalks_.data(), rewalk_count_}; }
  const std::byte* rewalk_frames(const Rewalked& walk) const {
    return rewalk_memory_.data() + walk.frames;
  }
  // Only the victim stands still: a collection may end between two walks, a method get its ID. What
  // changed once, and stayed, is the VM's doing, and the walks are not to be compared.
  bool vm_went_on() const { return vm_went_on_; }
  // Whether a rewalk did wrong by itself: the last one, since after it there was none. What it did
  // is in the records below.
  bool rewalk_went_wrong() const { return rewalk_went_wrong_; }
  const FaultRecord& rewalk_fault() const { return rewalk_fault_; }
  const UnsafeCalls& rewalk_unsafe() const { return rewalk_unsafe_; }
  const SanitizerReports& rewalk_reports() const { return rewalk_reports_; }
  // The stack from sp up, as much as was there or fitted; of costly and suspicious samples.
  std::span<const std::byte> stack() const { return {stack_, stack_size_}; }

 private:
  struct Call;
  static void invoke(void* call);
  WalkEnd run(Walker* walker, WalkTarget* target, int32_t depth, std::byte* frames,
              bool borrow_identity, FaultRecord* fault, UnsafeCalls* unsafe, int32_t* result);
  bool rewalk(const WalkRequest& request, WalkerId walker, int32_t depth, uint32_t options);
  void rewalk_all(const WalkRequest& request);
  void see_whether_vm_went_on(const WalkRequest& request);
  void note_thread(const WalkRequest& request);
  void copy_stack();

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
  ucontext_t context_;
  ucontext_t expected_;
  std::byte* frames_ = nullptr;
  FaultRecord fault_;
  UnsafeCalls unsafe_;
  SanitizerReports reports_;
  std::array<Rewalked, kMaxRewalks> rewalks_;
  size_t rewalk_count_ = 0;
  size_t rewalk_used_ = 0;
  bool rewalk_went_wrong_ = false, vm_went_on_ = false;
  std::vector<std::byte> rewalk_memory_;
  FaultRecord rewalk_fault_;
  UnsafeCalls rewalk_unsafe_;
  SanitizerReports rewalk_reports_;
  std::byte* stack_;
  size_t stack_size_ = 0;
  std::array<std::byte, kStackWindow> window_;
};

}  // namespace framestorm::stress
