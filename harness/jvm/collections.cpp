#include "harness/jvm/collections.h"

namespace framestorm {

Collections::Collections(const VmStructs& structs) : structs_(structs) {
  auto noted = structs.offset("CollectedHeap", "_is_stw_gc_active");
  if (!noted) noted = structs.offset("CollectedHeap", "_is_gc_active");
  if (!noted) return;
  noted_ = *noted;
  heap_ = static_cast<void* const volatile*>(structs.static_address("Universe", "_collectedHeap"));
}

bool Collections::leaves_frames_to_threads() const {
  return structs_.is_on("UseZGC") || structs_.is_on("UseShenandoahGC");
}

}  // namespace framestorm
