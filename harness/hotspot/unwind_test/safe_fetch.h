// SafeFetchN as the unwinder's tests have it: it contains faults like HotSpot's, counts its calls,
// and can be told where loads may go.
#pragma once

#include <cstdint>

namespace framestorm::unwind_test {

// SIGSEGV's handler for the process.
void install_safe_fetch();

struct AddressRange {
  uintptr_t low = 0;
  uintptr_t high = 0;
};

// As many loads as the largest allowed number of a table's instructions can need.
inline constexpr uint64_t kMostLoads = 400'000;

// While one lives, loads of this thread outside all of its ranges are counted as strays. A load
// counts as inside when its word touches the range. Not nested.
class LoadsWatch {
 public:
  LoadsWatch(AddressRange first, AddressRange second);
  ~LoadsWatch();
  LoadsWatch(const LoadsWatch&) = delete;
  LoadsWatch& operator=(const LoadsWatch&) = delete;

  static uint64_t loads();
  static uint64_t strays();
};

}  // namespace framestorm::unwind_test
