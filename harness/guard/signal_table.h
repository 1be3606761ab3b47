// Who handles which signal. The harness owns some: the kernel calls its handler whatever others do,
// and who asks for or sets the action of such a signal sees and sets the one behind it.
//
//   kernel ──> owner's handler ── not for the harness ──> forward() ──> the action behind:
//                                                         the profiler's, who chains to what he
//                                                         replaced: stand_for_jvm ──> HotSpot's
//
// sigaction() and signal() are interposed for that, from the start of the process. A profiler that
// replaces HotSpot's handler of a fault gets as the previous action HotSpot's flags and mask, and
// stand_for_jvm() in the place of its handler, so that the guard hears of faults that nobody else
// wants. rt_sigaction as a bare system call passes this table: reclaim() finds that out.
#pragma once

#include <signal.h>

#include <cstdint>

namespace framestorm::signals {

using Handler = void (*)(int signo, siginfo_t* info, void* context);

// The kernel calls `handler` from now on. Owning a signal again replaces the handler. Throws
// std::system_error. Not async-signal-safe.
void own(int signo, Handler handler, int flags, const sigset_t& mask);
// Puts owners' handlers back where something took them away by a bare system call, and that behind
// them. Returns how many signals that were. Not async-signal-safe.
int reclaim();

// The action that somebody other than the owner has set; the default one where nobody has.
// Async-signal-safe.
struct sigaction behind(int signo);
// Whether that is somebody's other than HotSpot's. Async-signal-safe.
bool is_behind_jvms(int signo);
// Calls the action behind as the kernel would: its mask is blocked, and stays so if its handler
// leaves by a jump. Async-signal-safe.
void forward(int signo, siginfo_t* info, void* context);

// Not by sigaction, which is interposed: what others have set stays known. Async-signal-safe.
void set_default_action(int signo);
// The kernel's default for what came, for a handler that then returns. Async-signal-safe.
void take_default_action(int signo, const siginfo_t* info);

// The calling thread's mask as the kernel has it; and sets it, and says what it was. By a system call,
// not by pthread_sigmask, which a walk may not call and which is interposed. Async-signal-safe.
uint64_t mask();
uint64_t set_mask(uint64_t mask);

// HotSpot's handler of a fault: the first that was set. Async-signal-safe.
Handler jvms_handler(int signo);
// Stands for it, see above; in guard.cpp. Async-signal-safe.
void stand_for_jvm(int signo, siginfo_t* info, void* context);

// The return address of handlers of signals, whose code goes on with what was interrupted. 0 where
// nobody has a handler of faults yet. Not async-signal-safe.
uintptr_t handlers_return_to();

// Owns a signal by a handler that drops it, so that nothing but a call of behind()'s handler runs
// that, and keeps what the kernel says of the first one that comes. Not async-signal-safe.
void mute(int signo);
// What came with the first signal since mute(); false when none has come. Any context.
bool first_muted(int signo, siginfo_t* info);

}  // namespace framestorm::signals
