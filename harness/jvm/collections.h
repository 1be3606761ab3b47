// What walkers meet of garbage collections: one that has stopped the world, which they may have to refuse,
// and frames that a collector has left to their threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/jvm/vm_structs.h"

namespace framestorm {

class Collections {
 public:
  explicit Collections(const VmStructs& structs);

  // Whether this HotSpot's structures say where it notes that.
  bool are_known() const { return heap_ != nullptr; }

  // CollectedHeap::is_stw_gc_active(), is_gc_active() up to JDK 21; false when nothing is known.
  // Another thread may begin or end one at any time. Async-signal-safe.
  bool stopped_the_world() const {
    if (!are_known()) return false;
    const void* const heap = *heap_;  // null until the VM has made it
    return heap != nullptr && read_at<bool>(heap, noted_);
  }

  // Whether a collection leaves it to each thread to process its frames as it returns to them
  // (runtime/stackWatermarkSet.hpp): ZGC, Shenandoah.
  bool leaves_frames_to_threads() const;
  // Of any kind, since the JVM began; 0 when this HotSpot's structures do not say it.
  uint32_t count() const;

 private:
  void* const volatile* heap_ = nullptr;        // Universe::_collectedHeap; null: not known
  size_t noted_ = 0;                            // offset in it
  size_t count_ = 0;                            // offset in it; 0: not known
  std::array<const bool*, 2> concurrent_ = {};  // flags of such collectors; null: not known
};

}  // namespace framestorm
