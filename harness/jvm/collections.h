// Whether a garbage collection has stopped the world, which a walker may have to refuse.
#pragma once

#include <cstddef>

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

 private:
  void* const volatile* heap_ = nullptr;  // Universe::_collectedHeap; null: not known
  size_t noted_ = 0;                      // offset in it
};

}  // namespace framestorm
