// What the bytecodes of a method say of a frame's bci.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace framestorm {

// Where methods are called by an instruction (invoke...), ascending. `code` as JVMTI GetBytecodes gives
// it; what follows an opcode that there is not is left out.
std::vector<int32_t> invokes_in(std::span<const uint8_t> code);

}  // namespace framestorm
