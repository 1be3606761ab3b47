// The JSON form of an Input, which Python reads where a person reads the text form. It is written
// only: replay and encode take text and binaries.
//
//   {"scenario": "c1", "mode": "same-thread", "walker": "asgct",
//    "halt": {"text": "nmethod \"framestorm/C1.spin\" entry + 0x35", "frame_offset": 416},
//    "call": {"depth": "exact - 1", "context": "null", "env": "null", "options": 3,
//             "accepted_kinds": 1, "accepted_states": 5},
//    "mutations": [{"kind": "stack", "place": "sp + 3", "value": VALUE}],
//    "iterator_calls": ["next 3", "drain"]}
//
// `call` has what differs from the defaults of input.h, `halt` is left out where any halt will do.
// A mutation's kind and place are those of the text form: "register" "pc", "stack" "sp + 3",
// "thread" "last-java-sp".
//
//   VALUE  {"text": "real-sp - 64", "kind": "real-sp", "delta": -64}
//
// with "index" (slot, other-sp, other-pc), "raw" (raw; a number), "code" {"kind", "name", "tier",
// "anchor"} (code), and "thread_state" (raw, in the field `state`: HotSpot's name for it). Any
// thread; allocates.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "harness/input/input.h"

namespace framestorm {

nlohmann::json to_json(const Input& input);
nlohmann::json to_json(const SymbolicValue& value);

// What a finding and `framestorm-native decode --json` have of an input: {"text", "input", "state"}
// (text.h, the above, state.h).
nlohmann::json input_record(const Input& input);

}  // namespace framestorm
