// What a sampled thread ran, by the code map.
#pragma once

#include <functional>
#include <string>

#include "harness/jvm/code_map.h"

namespace framestorm::stress {

// The code at a pc by name; `kind`: of what sort it is ("c2", "interpreter", "native or VM").
std::string code_of(const CodeMap& code, uintptr_t pc, std::string* kind);
// The same, finer: codelets and libjvm's functions by name, these as the linker has them.
std::string position_of(const CodeMap& code, uintptr_t pc, std::string* kind);
// Whether the pc's code may be in the midst of what `method`, the innermost of a shadow stack, is
// inlined in (Against::may_lack_innermost). `number_of`: of an instrumented method, else -1.
bool may_lack_innermost(const CodeMap& code, uintptr_t pc, int32_t method,
                        const std::function<int32_t(jmethodID)>& number_of);

}  // namespace framestorm::stress
