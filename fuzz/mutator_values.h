// Values a stack walker may trip over, by what the place they go to means to it.
#pragma once

#include <cstdint>

#include "fuzz/mutator_rng.h"
#include "harness/input/input.h"

namespace framestorm {

// Code that exists now, and its size.
struct NamedCode {
  CodeRef ref;                  // legal; anchor entry
  uint32_t size = 0;            // bytes from its entry to its end; offsets beyond it leave the blob
  bool is_returned_to = false;  // HotSpot may compare return addresses with its entry
};

// Random existing code. Implemented over the live code map, faked in tests.
class CodeNames {
 public:
  CodeNames() = default;
  CodeNames(const CodeNames&) = delete;
  CodeNames& operator=(const CodeNames&) = delete;
  virtual ~CodeNames() = default;
  // Stays valid until the next change of the code map; nullptr when none is known. Must be fast and
  // depend on nothing but the code map and rng: it is called for about every second mutation.
  virtual const NamedCode* pick(Rng& rng) const = 0;
};

// What a walker takes the place for.
enum class ValueRole : uint8_t { pc, sp, fp, thread_state, any, count };
ValueRole role_of(const Mutation& mutation, Rng& rng);

// True when applying it changes nothing: sp = real-sp.
bool is_no_op(const Mutation& mutation);

// Gives the mutation another value that fits its place (one in 16: any value). `names` may be null.
// The result is legal and no no-op.
void pick_value(const CodeNames* names, Rng& rng, Mutation* mutation);

// Gives it a neighbour of the value it has. The result is legal and no no-op.
void tweak_value(const CodeNames* names, Rng& rng, Mutation* mutation);

// `code` with offset at one of the places where walkers go wrong: around entry, end and deopt
// handler, and anywhere inside. Falls back to `real-pc` when names knows no code.
void pick_code(const CodeNames* names, Rng& rng, SymbolicValue* value);

}  // namespace framestorm
