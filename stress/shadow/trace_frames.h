// A trace's frames by name, as the comparison with a shadow stack wants them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stress/shadow/compare.h"
#include "stress/shadow/instrumented_methods.h"

namespace framestorm::stress {

// A Java frame.
struct NamedFrame {
  std::string_view name;  // "pkg/Class.method"
  int32_t number = -1;    // -1: not instrumented
  int32_t bci = 0;
  bool is_adjacent = false;  // the frame before it is its callee
};

// The instrumented ones among them, innermost first.
std::vector<TraceFrame> instrumented_frames(std::span<const NamedFrame> frames,
                                            const InstrumentedMethods& methods);
// Why some caller's bci cannot be right; empty when all can.
std::string wrong_call(std::span<const NamedFrame> frames, const InstrumentedMethods& methods);
// The trace against a shadow stack, callers' bcis too; `trace`: its instrumented frames. `why`: what a
// wrong bci is, else left alone. A caller that says that it stands before its push, where it makes no
// call, has only its bci wrong.
Compared compare_frames(std::span<const NamedFrame> frames, std::span<const TraceFrame> trace,
                        const Against& against, const InstrumentedMethods& methods,
                        std::string* why);
// Where a trace and a shadow stack (methods, innermost first) part.
std::string difference(const Compared& compared, std::span<const TraceFrame> trace,
                       std::span<const int32_t> shadow, const InstrumentedMethods& methods);

}  // namespace framestorm::stress
