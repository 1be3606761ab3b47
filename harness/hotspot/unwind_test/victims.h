// Functions to unwind: compiled without frame pointers and with optimisation (CMakeLists.txt), but
// for what the names say.
#pragma once

#include <cstddef>

namespace framestorm::unwind_test {

// A chain of calls that ends in leaves; returns something that depends on all of them. Frames with
// pushes, large frames, arguments on the stack, alloca, locals aligned beyond the stack's 16 bytes.
int call_chain(int depth);

// The same chain out of qsort's callback and of bsearch's, and formatted by snprintf.
int through_libc();

// Unwind directives that compilers seldom make, in assembler: remember and restore, offsets with
// every encoding, val_offset, expressions, GNU_args_size, rules for other registers.
extern "C" int framestorm_odd_directives();

// Sets the trap flag, calls `function`, clears it. framestorm_after_stepped is the return address.
extern "C" void framestorm_run_stepped(void (*function)());
extern "C" char framestorm_after_stepped[];

}  // namespace framestorm::unwind_test
