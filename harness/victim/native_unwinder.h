// The C and C++ frames of a halted thread, by the unwinder of the C++ runtime, which throws exceptions
// by the same tables. No walker under test has a part in it.
//
// That unwinder begins with its caller, and cannot be given registers. But it goes through a signal's
// frame, and takes the registers of what was interrupted from the context that the kernel put there:
//
//   unwinder ──> handler of a signal that is raised here ──> its context, lent the halted thread's
//                                                            registers ──> the halted thread's frames
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace framestorm {

struct NativeFrame {
  uintptr_t pc = 0;  // of the context, then return addresses
  uintptr_t sp = 0;  // while it runs: above what its callee's return address stands in
};

class NativeUnwinder {
 public:
  // Of a thread in the state `context`, whose stack stands still and is sound: innermost first, up to a
  // frame for whose pc `ends` is true, which is not of them, to the thread's first frame, or to one
  // without tables, unless that is known to keep a frame pointer (untabled.h). Valid until the next
  // call. Not inside a walk, and by one thread at a time: the signal needs its stack, on which there
  // must be room for a page, and must not be blocked there.
  std::span<const NativeFrame> unwind(const ucontext_t& context,
                                      bool (*ends)(const void* with, uintptr_t pc),
                                      const void* with);
  // Whether the last one ended for what `ends` said.
  bool has_ended() const { return ended_; }

 private:
  static constexpr size_t kMostFrames = 512;

  static void on_signal(int, siginfo_t*, void* raw_context);
  // From context_ on.
  void unwind_tabled();

  ucontext_t context_ = {};
  uintptr_t untabled_fp_ = 0;  // of the frame without tables that it has come to
  bool (*ends_)(const void* with, uintptr_t pc) = nullptr;
  const void* with_ = nullptr;
  bool inside_ = false;  // the unwinder has come to the thread's own frames
  bool ended_ = false;
  size_t count_ = 0;
  std::array<NativeFrame, kMostFrames> frames_;
};

}  // namespace framestorm
