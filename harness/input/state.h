// How far the state that an Input makes is from one that a thread can have.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/input/input.h"

namespace framestorm {

// In the order in which findings are listed: what a profiler's user can meet comes first.
enum class StateKind : uint8_t {
  real,     // nothing is mutated, and the call is one that a profiler makes
  torn,     // only real values of this thread, at a wrong moment or place
  corrupt,  // values from elsewhere, or a call that no profiler makes
  count
};
std::string_view name_of(StateKind kind);

// The worst of what the Input mutates and of its call. An Input says what is set, not what that
// finds in a process. So a value is real or torn here only if it is so in every process; what
// cannot be told is corrupt.
//
//   value                   torn, if                               as otherwise corrupt
//   real                    (+ 0: real, as nothing changes)
//     of sp, fp, anchor       the offset stays on the own stack
//     of pc                   the offset is below 4 KiB
//   real-sp, real-fp        the offset stays on the own stack
//   real-pc                 the offset is below 4 KiB
//   stack-base              the offset leads down to a used part of the own stack
//   slot N                  it is on the own stack, without an offset
//   code                    the victim is halted in that code, or in the interpreter if it is a
//                           codelet, and the offset stays behind its anchor (before `end`)
//   raw                     a legal thread state; 0 in an anchor, as when it is cleared
//   stack-end, guard-page, other-sp, other-pc, libc-text, libjvm-text, java-heap, unmapped,
//   misaligned              never
//
// Where the offset is one of an address on the stack it has to be a multiple of 8. "On the own
// stack" is from 64 KiB below sp up to the stack's base, of which the halt says how far it is;
// without a halt, 64 KiB up. `fp` is taken for a frame pointer. Whether a position in code is an
// instruction's start cannot be told.
//
//   call                    corrupt, if
//   depth                   it is 0 or less
//   context, env            they are not the victim's
//   options                 a bit means nothing to the walker
//   calls to an iterator    null arguments; `select`, which may take an iterator that is closed
//
// Pure. `input` has to be legal (canonical.h). Any thread.
StateKind state_of(const Input& input);

}  // namespace framestorm
