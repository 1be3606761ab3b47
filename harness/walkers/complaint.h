// What adapters that compare calls within one walk say of them. Signal context: allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "harness/walkers/walker.h"

namespace framestorm {

struct ComplaintPlace {
  std::string_view clause;  // static storage
  ComplaintScope scope;
  size_t number;          // of the call in its sequence, from 1
  std::string_view call;  // its name; empty: it is of none
};

// "call 3 (next): returned 1, not 0"; `what`: "returned".
void complain(WalkFacts* facts, const ComplaintPlace& place, std::string_view what, int64_t got,
              int64_t wanted);

// What ASGST_CallTrace::frame_info and its likes are before the walk, which writes them in any case.
inline constexpr const char kNoInfo[] = "frame_info was not written";
// What a walk has left there; null where it has not written it, of which it complains.
inline const char* written_info(const void* frame_info, WalkFacts* facts) {
  if (frame_info != kNoInfo) return static_cast<const char*>(frame_info);
  complain(facts, {"frame-info-not-written", ComplaintScope::always, 0, {}},
           "bytes written of frame_info", 0, sizeof(void*));
  return nullptr;
}

}  // namespace framestorm
