// Text form of an Input: what a person reads, edits and feeds to `framestorm encode`.
//
//   framestorm-input 1
//   scenario c2-inlined
//   mode same-thread
//   walker asgct
//   halt nmethod "framestorm/C1.spin" tier 4 entry + 0x35 frame-offset 416 occurrence 3 event gc
//   depth exact - 1                     # also: normal zero one huge 17 -3
//   context misaligned
//   env null
//   options 0x3
//   accepted-kinds 0x1
//   accepted-states 0x5
//   register pc = stub "call_stub" entry + 7
//   register sp = real-sp - 64
//   stack sp + 3 = libc-text + 16       # offsets of stack words are in words
//   thread state = raw 0x8
//   thread last-java-sp = stack-base - 8
//   iterator next 3                     # also: drain, rewind, state, thread-state, open,
//   iterator jump 1                     # open-frame, open-to-java, leave, select 0, next-null, open-null
//
// Only the first two lines are needed; the rest has the defaults of input.h. Order of `register`,
// `stack` and `thread` lines is the order of application, that of `iterator` lines the order of the
// calls. `#` starts a comment.
#pragma once

#include <string>
#include <string_view>

#include "harness/input/input.h"

namespace framestorm {

// Canonical text: defaults are left out, numbers as in the example. Ends with a newline.
std::string to_text(const Input& input);

// Parts of it, as they stand in a line: `real-sp - 64`, `stub "call_stub" entry + 7`, `next 3`; the
// place that a mutation sets (`sp + 3`), the depth (`exact - 1`, `17`).
std::string to_text(const SymbolicValue& value);
std::string to_text(const CodeRef& code, int32_t delta);
std::string to_text(const IteratorCall& call);
std::string to_text(const QueueCall& call);
std::string place_text(const Mutation& mutation);
std::string depth_text(const CallArgs& call);

struct TextError {
  int line = 0;  // 1-based
  std::string message;
};

// Returns true and fills *out, or returns false and fills *error (what is wrong and what is allowed
// there); *out is unspecified then.
bool parse_text(std::string_view text, Input* out, TextError* error);

}  // namespace framestorm
