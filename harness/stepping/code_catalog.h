// The code that is stepped through, blob by blob: what it is for a walker, and what it has done at
// each instruction.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "harness/jvm/jvm.h"

namespace framestorm::stepping {

// What a blob is to the stack of Java frames.
enum class Role : uint8_t {
  compiled,        // an nmethod of C1 or C2
  native_wrapper,  // an nmethod of a native method
  interpreter,     // any codelet
  adapter,         // i2c and c2i
  deoptimization,  // builds interpreted frames in the place of a compiled one
  return_barrier,  // brings frames of a continuation back when the last one returns
  stub             // any other in the code cache
};

// Part of the table of results: "C2 prologue", "itable stub".
using Section = std::string_view;

struct Blob {
  Role role = Role::stub;
  Section stub;  // of one that is neither a method's nor the interpreter's
  CodeEntry entry;
  uintptr_t deopt_handler =
      0;  // of compiled code: its deoptimisation handler begins there; 0 without one
  std::vector<std::byte> code;  // as it was stepped through first
};

inline bool is_interpreted(const Blob* blob) {
  return blob != nullptr && blob->role == Role::interpreter;
}
inline bool is_deoptimisation(const Blob* blob) {
  return blob != nullptr && blob->role == Role::deoptimization;
}

// Of the interpreter: where an exception's handler is entered, the frame has that in its bytecode pointer
// before the register has; what returns takes the frame down. After either it may be gone.
bool leaves_frame(const Blob& codelet);

class CodeCatalog {
 public:
  explicit CodeCatalog(Jvm& jvm);

  // The blob of code at pc; null outside the code cache. Takes in what has been compiled since.
  // It stays as it is for good. On the stepped thread, which is not in the VM then; allocates.
  // `runs`: its code does, so that somebody will tell of it; that is waited for, some milliseconds.
  const Blob* at(uintptr_t pc, bool runs = false);
  bool in_code_cache(uintptr_t pc) const { return jvm_.code_map().in_code_cache(pc); }
  const std::deque<Blob>& blobs() const { return blobs_; }

  // Static storage. `frame_stands`: the frame of compiled code is as its body has it.
  static Section section_of(const Blob* blob, uintptr_t pc, bool frame_stands);

 private:
  const Blob* add(const CodeEntry& entry);
  // Null when nobody tells of it in time. Once for a page of it, until other code is told of.
  const CodeEntry* wait_for(uintptr_t pc);

  Jvm& jvm_;
  std::deque<Blob> blobs_;
  std::map<uintptr_t, const Blob*> by_begin_;
  const Blob* last_ = nullptr;
  uint64_t epoch_ = 0;
  std::set<std::pair<uintptr_t, uint64_t>> waited_for_;
};

}  // namespace framestorm::stepping
