// What a thread in Java answers once it runs on, as to JFR at a safepoint poll, to a request that a walk
// noted while it was halted (Outcome::has_request). By then the thread may be elsewhere: a mutated
// context makes a stale request.
#pragma once

#include "harness/executor/session.h"

namespace framestorm {

// `walked`: of the walk of `input` that was just made. Arms the victim's poll, as JFR's samplers do, releases the
// world, and waits until the victim is at that poll. Control thread, on its own stack. The findings: the answer
// faulted; or a frame is not the thread's, of which an unmutated request has to give the scenario's and a stale one
// the outermost; or one that was inlined where it was requested (Outcome::requested) is called compiled; or the
// answer does not begin with the frame that the thread was in, where it answered at its first poll
// (Outcome::at_first_poll).
Outcome answer_at_poll(Session& session, const Input& input, const Outcome& walked);

}  // namespace framestorm
