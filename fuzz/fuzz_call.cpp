// The call's own arguments: depth, null and misaligned context, foreign JNIEnv.
#include "fuzz/mutator_profile.h"

namespace framestorm {

const RegisteredTarget kTarget({.target = "fuzz_call", .call_args = true});

}  // namespace framestorm
