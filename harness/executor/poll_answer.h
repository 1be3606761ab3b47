// What a thread in Java answers once it runs on, as to JFR at a safepoint poll, to a request that a walk
// noted while it was halted (Outcome::has_request). By then the thread may be elsewhere: a mutated
// context makes a stale request.
#pragma once

#include "harness/executor/session.h"

namespace framestorm {

// `walked`: of the walk of `input` that was just made. Releases the world, and waits until the victim
// is at a poll. Control thread, on its own stack. The findings: the answer faulted; or a frame is not
// the thread's, of which an unmutated request has to give the scenario's and a stale one the outermost;
// or one that was inlined where it was requested (Outcome::requested) is called compiled.
Outcome answer_at_poll(Session& session, const Input& input, const Outcome& walked);

}  // namespace framestorm
