// What JVMTI's thread is about to tell of.
#pragma once

#include <time.h>

namespace framestorm::stepping {

// Waits until `is_told()`, together longer than JVMTI's thread waits for a core on a busy machine: 100 ms. What
// is not told by then loses the truth for as long as the code runs. Whether it was told. On the stepped
// thread, in signal context.
template <typename IsTold>
bool wait_until_told(const IsTold& is_told) {
  constexpr timespec kGlance = {0, 500'000};
  constexpr int kGlances = 200;
  for (int glance = 0; glance < kGlances; ++glance) {
    nanosleep(&kGlance, nullptr);
    if (is_told()) return true;
  }
  return false;
}

}  // namespace framestorm::stepping
