#include "harness/jvm/collections.h"

#include <algorithm>
#include <string_view>

namespace framestorm {
namespace {

// A flag of HotSpot's that is true or false; null where its structures do not say where it is.
const bool* flag(const VmStructs& structs, std::string_view wanted) {
  const void* const flags = structs.static_address("JVMFlag", "flags");
  const void* const number = structs.static_address("JVMFlag", "numFlags");
  const auto name = structs.offset("JVMFlag", "_name");
  const auto address = structs.offset("JVMFlag", "_addr");
  if (flags == nullptr || number == nullptr || !name || !address) return nullptr;
  const auto* own = read_at<const std::byte*>(flags);
  for (size_t i = 0; i < read_at<size_t>(number); ++i, own += structs.size_of("JVMFlag")) {
    const auto* const is = read_at<const char*>(own, *name);
    if (is != nullptr && is == wanted) return read_at<const bool*>(own, *address);
  }
  return nullptr;
}

}  // namespace

Collections::Collections(const VmStructs& structs) {
  concurrent_ = {flag(structs, "UseZGC"), flag(structs, "UseShenandoahGC")};
  count_ = structs.offset("CollectedHeap", "_total_collections").value_or(0);
  auto noted = structs.offset("CollectedHeap", "_is_stw_gc_active");
  if (!noted) noted = structs.offset("CollectedHeap", "_is_gc_active");
  if (!noted) return;
  noted_ = *noted;
  heap_ = static_cast<void* const volatile*>(structs.static_address("Universe", "_collectedHeap"));
}

bool Collections::leaves_frames_to_threads() const {
  return std::ranges::any_of(concurrent_,
                             [](const bool* flag) { return flag != nullptr && *flag; });
}

uint32_t Collections::count() const {
  const void* const heap = are_known() ? *heap_ : nullptr;
  return heap == nullptr || count_ == 0 ? 0 : read_at<uint32_t>(heap, count_);
}

}  // namespace framestorm
