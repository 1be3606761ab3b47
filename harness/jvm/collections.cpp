#include "harness/jvm/collections.h"

namespace framestorm {

Collections::Collections(const VmStructs& structs)
    : heap_(
          static_cast<void* const volatile*>(structs.static_address("Universe", "_collectedHeap"))),
      noted_(structs.offset("CollectedHeap", "_is_stw_gc_active")) {
  if (!noted_) noted_ = structs.offset("CollectedHeap", "_is_gc_active");
}

}  // namespace framestorm
