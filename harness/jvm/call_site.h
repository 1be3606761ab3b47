// Where code calls.
#pragma once

#include <cstdint>

namespace framestorm {

// Whether bytes before `pc` are a call instruction that returns to it: an instruction that ends in such bytes
// passes, too. `begin`: the first readable byte. Any context.
bool follows_call(uintptr_t pc, uintptr_t begin);

}  // namespace framestorm
