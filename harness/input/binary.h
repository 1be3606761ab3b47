// Binary form of an Input: what libFuzzer and AFL++ mutate and what artifacts contain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/input/input.h"

namespace framestorm {

// Upper bound of encode()'s result in bytes.
inline constexpr size_t kMaxEncodedInput = 4096;

// Total: every byte string yields a legal Input (enumerators modulo their count, missing bytes read
// as zero, surplus bytes ignored). decode(encode(x)) == x. Reuses the storage of *out: no allocation
// once its vectors and strings have grown. Any thread; not async-signal-safe.
void decode(std::span<const uint8_t> bytes, Input* out);

// Writes at most kMaxEncodedInput bytes into *out (replacing its content).
void encode(const Input& input, std::vector<uint8_t>* out);

enum class ArtifactCheck : uint8_t {
  ok,
  empty,
  too_large,        // longer than kMaxEncodedInput
  foreign_version,  // first byte is not kInputVersion
  not_canonical     // legal as fuzz input, but encode(decode(x)) != x: not written by framestorm
};
// What `replay` and `decode` ask before they trust a file given by a person.
ArtifactCheck check_artifact(std::span<const uint8_t> bytes);

}  // namespace framestorm
