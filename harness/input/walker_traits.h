// What of an Input each walker can do and reads; mutators leave the rest at its default.
#pragma once

#include <array>
#include <cstdint>

#include "harness/input/input.h"

namespace framestorm {

struct WalkerTraits {
  bool same_thread = true;
  bool separate_thread = true;
  uint32_t options = 0;  // the bits of CallArgs::options that mean something; 0: it has none
  bool masks = false;    // accepted_kinds, accepted_states
  bool iterator_calls = false;

  constexpr bool walks_in(Mode mode) const {
    return mode == Mode::same_thread ? same_thread : separate_thread;
  }
};

// The options of profile.h and profile2.h that an input may set. ASGST_WALK_SAME_THREAD is not one
// of them: the mode says that.
inline constexpr uint32_t kIncludeCFrames = 1;
inline constexpr uint32_t kIncludeNonJavaThreads = 2;
inline constexpr uint32_t kWalkDuringUnsafeStates = 4;
inline constexpr uint32_t kWalkSameThread = 8;
inline constexpr uint32_t kAsgstOptions =
    kIncludeCFrames | kIncludeNonJavaThreads | kWalkDuringUnsafeStates;

// The walkers that harness/hotspot adds to HotSpot.
inline constexpr std::array kAddedWalkers = {WalkerId::asgst,          WalkerId::asgst_env,
                                             WalkerId::asgst_thread,   WalkerId::asgct2,
                                             WalkerId::asgst_iterator, WalkerId::asgst_frame};

constexpr WalkerTraits traits_of(WalkerId walker) {
  switch (walker) {
    case WalkerId::asgst:
      return {.options = kAsgstOptions, .masks = true};
    case WalkerId::asgst_env:
    case WalkerId::asgst_thread:
      return {.same_thread = false, .options = kAsgstOptions, .masks = true};
    case WalkerId::asgst_iterator:
    case WalkerId::asgst_frame:
      return {.options = kAsgstOptions, .iterator_calls = true};
    case WalkerId::asgct:
    case WalkerId::asgct2:
    case WalkerId::gst:
    case WalkerId::plugin:
    case WalkerId::count:
      break;
  }
  return {};
}

}  // namespace framestorm
