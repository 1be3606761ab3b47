// Binary form of an Input: what libFuzzer and AFL++ mutate and what artifacts contain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/input/input.h"

namespace framestorm {

// Layout, version 1 (multi-byte numbers little-endian, `varint` is LEB128, z: zigzag):
//   version scenario walker<<4|has_iterator_calls<<2|has_masks<<1|mode
//   count<<2|has_call<<1|has_halt
//     [halt] [call] [masks] [iterator_calls] mutation*
//   halt      has_frame_offset<<7|code  z-varint delta  [varint frame_offset]
//   call      has_options<<7|env<<5|context<<3|depth  [z-varint raw_depth]  [varint options]
//   masks     accepted_kinds  varint accepted_states
//   iterator_calls  count  (argument<<4|kind)*; queue_calls, of walkers that read those, where kind 15
//             is 15 and what the next byte says
//   mutation  kind<<6|which  [z-varint offset]  value
//   value     width<<6|kind  delta or raw: width bytes  [varint index]  [code]
//             width 0..3: 0, 1, 2, 4 bytes of signed delta; 1, 2, 4, 8 bytes of raw; `misaligned`
//             has its delta itself there
//   code      anchor<<5|tier<<2|kind  length  name
// Bits that stand for nothing yet are 0: a part that is added later gets one of them, and what was
// written before goes on meaning the same.
// Only encode()'s choice among equivalent encodings (shortest) is canonical.

// Upper bound of encode()'s result in bytes.
inline constexpr size_t kMaxEncodedInput = 4096;

// Total: every byte string yields a legal Input (canonical.h): enumerators modulo their count,
// missing bytes read as zero, surplus bytes and the version's value ignored. decode(encode(x)) == x
// for every legal x. Reuses the storage of *out: no allocation once the vectors and strings of this
// thread's Inputs have grown. Any thread; not async-signal-safe.
void decode(std::span<const uint8_t> bytes, Input* out);

// Writes at most kMaxEncodedInput bytes into *out (replacing its content). `input` has to be legal.
void encode(const Input& input, std::vector<uint8_t>* out);

enum class ArtifactCheck : uint8_t {
  ok,
  empty,
  too_large,        // longer than kMaxEncodedInput
  foreign_version,  // first byte is not kInputVersion
  not_canonical,    // legal as fuzz input, but encode(decode(x)) != x: not written by framestorm
  count
};
// What `replay` and `decode` ask before they trust a file given by a person.
ArtifactCheck check_artifact(std::span<const uint8_t> bytes);

// What is wrong, for a message: "empty file", "longer than 4096 bytes", ...; "" for ok.
std::string_view explain(ArtifactCheck check);

}  // namespace framestorm
