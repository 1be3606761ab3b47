// Walks of the stepped thread from another one, while it stands in its trap handler.
//
//   stepped thread, in the handler            the thread of OutsideWalks
//   ─────────────────────────────────         ──────────────────────────────────────────
//   run(call) ── the call, a futex ────────>  run_walk(), under the stepped thread's identity
//   waits                                     where the walker needs that
//   goes on  <──────────────── a futex ─────  record and incidents are filled in
#pragma once

#include <atomic>
#include <thread>

#include "harness/guard/guard.h"
#include "harness/jvm/jvm.h"
#include "harness/victim/world.h"
#include "harness/walk/run_walk.h"

namespace framestorm::stepping {

class OutsideWalks {
 public:
  // Starts the thread and attaches it to the JVM, as the control thread is, from which fuzzing walks
  // halted victims. Not in signal context.
  explicit OutsideWalks(Jvm& jvm);
  ~OutsideWalks();
  OutsideWalks(const OutsideWalks&) = delete;
  OutsideWalks& operator=(const OutsideWalks&) = delete;

  // Makes the walk on that thread, and waits for it. One caller at a time. Async-signal-safe.
  void run(const WalkCall& call, WalkRecord* record, Incidents* incidents);

 private:
  void serve(Jvm& jvm);

  ThreadSlot asked_, answered_;  // their futex words
  std::atomic<bool> over_{false};
  const WalkCall* call_ = nullptr;
  WalkRecord* record_ = nullptr;
  Incidents* incidents_ = nullptr;
  Guard::Watch watch_;
  std::thread thread_;
};

}  // namespace framestorm::stepping
