// The fuzz loop has a stack of its own and moves from thread to thread. In same-thread mode it runs
// on the victim, inside the victim's signal handler. In separate-thread mode it runs on the control
// thread. A move is one futex hand-over; between moves nothing crosses threads.
//
//                    hosted by the control thread    hosted by the victim
//                    ────────────────────────────    ───────────────────────────────────────────
//   loop's stack     body ── move_to(victim) ──────> body ── call_on_host(walk) ─┐      ┌─> body
//                                                                   stack switch │      │
//   victim's stack   parked in its signal handler                                └─> walk()
//
// walk() runs in the signal handler's frame, right below the victim's sp. A profiler's walk runs
// there too, so a walk sees the same memory below sp.
#pragma once

#include <sys/mman.h>

#include <functional>

#include "harness/victim/world.h"

namespace framestorm {

class MigratingLoop {
 public:
  static MigratingLoop& get();

  // Control thread: runs `body` on the loop's stack and returns when it has returned. The loop must
  // be back on the control thread then. `body` may throw nothing.
  void run(std::function<void()> body);

  // From the loop's stack -----------------------------------------------------------------------
  // Continue on that parked thread (null: on the control thread).
  void move_to(ThreadSlot* slot);
  // Calls fn(arg) on the stack of the thread that hosts the loop.
  void call_on_host(void (*fn)(void*), void* arg);
  ThreadSlot* host() const { return host_; }  // null: the control thread
  // The host's signal mask (signals::mask()), as it was when it began to host.
  const uint64_t& host_mask() const { return host_mask_; }

  // World's host callback; signal context.
  static void host_from_signal(ThreadSlot* slot);

 private:
  MigratingLoop() = default;
  enum class Request : uint8_t { call, move, finish };
  static void entry();
  // Runs the loop on the calling thread until it asks to leave; true when it has finished.
  bool serve(ThreadSlot* slot);

  static constexpr size_t kStackSize = size_t{16} << 20;
  void* stack_ = MAP_FAILED;
  std::function<void()> body_;
  void* loop_sp_ = nullptr;  // saved while a host runs
  void* host_sp_ = nullptr;  // saved while the loop runs
  Request request_ = Request::finish;
  void (*call_)(void*) = nullptr;
  void* call_arg_ = nullptr;
  ThreadSlot* target_ = nullptr;
  ThreadSlot* host_ = nullptr;
  uint64_t host_mask_ = 0;
  ThreadSlot control_thread_;
};

}  // namespace framestorm
