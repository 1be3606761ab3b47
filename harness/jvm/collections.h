// What walkers meet of garbage collections: one that has stopped the world, which they may have to refuse,
// and frames that a collector has left to their threads.
#pragma once

#include <cstddef>

#include "harness/jvm/vm_structs.h"

namespace framestorm {

class Collections {
 public:
  // `structs` outlives it.
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

 private:
  const VmStructs& structs_;
  void* const volatile* heap_ = nullptr;  // Universe::_collectedHeap; null: not known
  size_t noted_ = 0;                      // offset in it
};

}  // namespace framestorm
