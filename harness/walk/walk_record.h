// One walk: which it was, what it answered and what happened meanwhile. Plain data, which signal
// handlers fill in and copy.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "harness/guard/guard.h"
#include "harness/walk/frame_buffer.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// errno before each walk: a value that no call sets.
inline constexpr int kErrnoMarker = 0x5a5a;

// What happened during a walk beside its answer.
struct Incidents {
  FaultRecord fault;
  ContainedFaults contained;  // of a walker that contains its faults
  UnsafeCalls unsafe;
  SanitizerReports reports;
  WalkWrites writes;  // of a walk that was watched for them
};
inline constexpr Incidents kNoIncidents = {};

struct WalkRecord {
  WalkerId walker = kDefaultWalker;
  int32_t depth = 0;
  uint32_t options = 0;                 // CallArgs::options
  std::optional<uint32_t> stale_words;  // WalkCall::stale_words
  // The thread as the walk saw it.
  uint32_t thread_state = 0;
  // Of its frame anchor or, where a stub sets none, the return address that its call left; 0 when
  // there is none.
  uintptr_t last_java_pc = 0;

  WalkEnd end = WalkEnd::returned;
  int32_t result = 0;  // the walker's count or error code, when it returned
  bool has_facts = false;
  WalkFacts facts;
  // A garbage collection had stopped the world when it began, and when it was over.
  bool in_collection = false;
  bool outside_collection = false;  // it is known that none had, at neither time
  int errno_after = kErrnoMarker;
  bool signal_mask_changed = false;  // and has been put back
  uint64_t ns = 0;                   // how long it took, if that was measured

  // Borrowed from whoever made the walk.
  const std::byte* frames = nullptr;
  const FrameBuffer* buffer = nullptr;           // that has the frames; null for other memory
  const ucontext_t* context = nullptr;           // what the walker was given; null when it got null
  const ucontext_t* expected_context = nullptr;  // the same before the walk
  const Incidents* incidents = &kNoIncidents;

  // Nothing of what is borrowed is there any more but these frames.
  void keep_only(const std::byte* kept_frames) {
    frames = kept_frames;
    buffer = nullptr;
    context = expected_context = nullptr;
    incidents = &kNoIncidents;
  }

  // Frames that can be read: a walker may say more than it had room for.
  size_t frame_count() const {
    return end == WalkEnd::returned ? static_cast<size_t>(std::clamp(result, 0, std::max(depth, 0)))
                                    : 0;
  }
  // Null when the walker's API says nothing beside the frames.
  const WalkFacts* facts_if_any() const { return has_facts ? &facts : nullptr; }
  // Why it went no further; null at the stack's end, at the depth, and where the API does not say.
  const char* stopped() const { return has_facts ? facts.stopped : nullptr; }
  // Why the trace is less than the stack, as the walker says; null: it is whole, or fills the depth.
  const char* cut() const {
    return has_facts && facts.left_out_frozen ? "frames are in the heap" : stopped();
  }
};

// Of two walks of one halted thread by one walker: the same where they answered the same, or where neither
// returned. Times, incidents and what the call was do not count. Any thread; no allocation.
uint64_t digest_of_answer(const WalkRecord& record, const FrameLayout& layout);

}  // namespace framestorm
