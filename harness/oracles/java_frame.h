// Java frames as every walker sees them, so that those of two can be compared.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "harness/input/walker_table.h"
#include "harness/jvm/code_map.h"
#include "harness/jvm/methods.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// A native method's has kNoBci where its walker knows no bci of it.
struct JavaFrame : Frame {
  bool native = false;
  bool tells_inlined = false;

  bool is_inlined() const { return type == FrameType::inlined; }
  bool is_interpreted() const { return type == FrameType::interpreted || tier == 0; }
  bool is_compiled() const { return type == FrameType::compiled || is_inlined() || tier > 0; }
  // Of the same method.
  bool runs_unlike(const JavaFrame& other) const;
  // `anywhere`: whatever the pcs.
  bool has_method_of(const JavaFrame& other, bool anywhere = false) const {
    if (!unnamed && !other.unnamed) return method == other.method;
    return native && other.native && (anywhere || pc == other.pc || pc == 0 || other.pc == 0);
  }
  // Or one of them is not known.
  bool has_bci_of(const JavaFrame& other) const {
    return bci == other.bci || bci == kNoBci || other.bci == kNoBci;
  }
};
using JavaFrames = std::span<const JavaFrame>;

// Of `count` frames that the walker wrote, those of Java methods, into *out.
void read_java_frames(const WalkerTraits& walker, const std::byte* frames, size_t count,
                      const CodeMap& code, const MethodTable& methods, std::vector<JavaFrame>* out);

// "compiled, tier 4".
std::string how_it_runs(const JavaFrame& frame);

}  // namespace framestorm
