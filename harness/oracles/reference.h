// Comparison with the reference: an unmutated trace of a halted victim agrees with what JVMTI
// GetStackTrace says of the same thread afterwards.
//
// Between the two the victim runs on to its next safepoint poll, so its innermost frames move. What
// cannot have moved is everything below the innermost frame that belongs to the scenario itself:
// those methods are in a call that has not returned. Of a virtual thread the reference shows the
// logical stack, which ends at Continuation.enter; a walker may go on into the carrier. Where outer
// frames of it are frozen in the heap, a walker goes on at Continuation.enterSpecial, below the
// frames that are on the stack.
#pragma once

#include <string>
#include <vector>

#include "harness/jvm/methods.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// Empty when they agree, else what differs. `reference` must not be empty. Frames of `trace` are
// compared from the outermost inwards, method and bci, up to and without the innermost frame whose
// class is in package `framestorm/`; that frame has to agree in its method if both traces have it
// there. What is the innermost such frame of the reference may be at another bci. With
// `outer_frozen` the frames of the trace up to Continuation.enterSpecial are compared, from that
// innermost frame of the scenario's outwards: they must be the reference's, and fewer.
std::string compare_with_reference(const std::vector<Frame>& trace,
                                   const std::vector<Frame>& reference, const MethodTable& methods,
                                   bool outer_frozen = false);

// Whether a method is one that runs virtual threads: frames of these end where their carrier's begin.
bool is_of_continuation(const std::string& method);

}  // namespace framestorm
