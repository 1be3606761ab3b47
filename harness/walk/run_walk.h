// The one guarded run of a walk. Fuzzing, replay and stress all make theirs here.
//
//   caller                run_walk()                                    guard
//   ───────────────────   ───────────────────────────────────────────   ───────────────────────────
//   WalkCall         ──>  reads residue
//                         borrows the target's identity (other thread)
//                         errno = kErrnoMarker                     ──>  Guard::call
//                                                                         writes stale words
//                                                                         Walker::walk
//                         puts residue, identity and mask back     <──  returned, fault, hang ...
//                                                                       Incidents
//   WalkRecord       <──  answer, errno, mask, time, incidents
//   + thread, buffer,
//     expected context
#pragma once

#include <ucontext.h>

#include <optional>

#include "harness/guard/write_watch.h"
#include "harness/jvm/collections.h"
#include "harness/jvm/thread_identity.h"
#include "harness/jvm/walk_residue.h"
#include "harness/walk/walk_record.h"
#include "harness/walkers/walker.h"

namespace framestorm {

// Everything in it is borrowed.
struct WalkCall {
  Walker* walker = nullptr;
  const WalkTarget* target = nullptr;
  std::byte* frames = nullptr;  // room for `depth` frames
  int32_t depth = 0;
  ucontext_t* context = nullptr;  // null: the walker is given none
  // The JVM's. A walk from another thread is made under the target's identity, where the walker
  // needs that.
  const ThreadIdentity* identity = nullptr;
  const Collections* collections = nullptr;  // the JVM's
  // What an abandoned walk leaves in the thread is taken back; null where the caller does that.
  const WalkResidue* residue = nullptr;
  bool contained = true;  // false: a walk that goes wrong ends as it would without framestorm
  // The thread's signal mask (signals::mask()), which is put back where the walk leaves another.
  // Null: only calls of libc's functions that change it are seen.
  const uint64_t* mask = nullptr;
  bool timed = false;
  // Prepared, of a contained walk: it is made there before. Null: its writes are not watched.
  WriteWatch* write_watch = nullptr;
  // What the walk finds in memory of its stack that it has not written: each 32 bits have this
  // value. Nothing: words of what ran there before, which differ from walk to walk.
  std::optional<uint32_t> stale_words;
};

// Makes the walk on the calling thread. Sets of *record what is the walk's own: the call, answer,
// errno, mask, time and `incidents`; the thread, the buffer and the expected context are the
// caller's to set. errno is lost. Signal context; async-signal-safe where
// ThreadIdentity::Scoped is. Not in a walk.
void run_walk(const WalkCall& call, WalkRecord* record, Incidents* incidents);

}  // namespace framestorm
