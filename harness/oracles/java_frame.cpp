#include "harness/oracles/java_frame.h"

#include <algorithm>

namespace framestorm {

bool JavaFrame::runs_unlike(const JavaFrame& other) const {
  if (native || other.native || bci == kNoBci || other.bci == kNoBci) return false;
  const bool tiers = tier != kNoTier && other.tier != kNoTier && tier != other.tier;
  const bool both_tell = tells_inlined && other.tells_inlined;
  return tiers || (both_tell && is_inlined() != other.is_inlined()) ||
         (is_interpreted() && other.is_compiled()) || (is_compiled() && other.is_interpreted());
}

void read_java_frames(const WalkerTraits& walker, const std::byte* frames, size_t count,
                      const CodeMap& code, const MethodTable& methods,
                      std::vector<JavaFrame>* out) {
  out->clear();
  const bool is_somebody_elses = walker.origin == WalkerOrigin::shared_object;
  const auto& types = walker.layout.types;
  const bool tells_inlined =
      !is_somebody_elses && std::ranges::find(types, FrameType::inlined) != types.end();
  for (size_t i = 0; i < count; ++i) {
    JavaFrame frame = {read_frame(walker.layout, frames, i, code)};
    if (is_machine(frame.type)) continue;
    if (is_somebody_elses) {
      if (frame.method == nullptr) continue;
      frame.pc = 0;
    }
    frame.bci = std::max(frame.bci, kNoBci);
    frame.tells_inlined = tells_inlined && frame.type != FrameType::none;
    frame.native = frame.unnamed || methods.is_native(frame.method) ||
                   (frame.method == nullptr && frame.type == FrameType::native);
    out->push_back(frame);
  }
}

std::string how_it_runs(const JavaFrame& frame) {
  const std::string how = frame.is_inlined()       ? "inlined"
                          : frame.is_interpreted() ? "interpreted"
                                                   : "compiled";
  return how + (frame.tier == kNoTier ? "" : ", tier " + std::to_string(frame.tier));
}

}  // namespace framestorm
