// What the JIT compilers have made of the program: what instrumentation changes of that is the
// distance from an instrumented program to the plain one.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/jvm/code_map.h"
#include "harness/jvm/methods.h"

namespace framestorm::stress {

// By the name of each method that is compiled now: its highest "tier", and what is "inlined" in its
// code of that tier, by name. Of what has been absorbed.
nlohmann::json compiled_code(const CodeMap& code, const MethodTable& methods);

}  // namespace framestorm::stress
