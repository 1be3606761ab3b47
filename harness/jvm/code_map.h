// What stands where in the code cache: nmethods (with tier, verified entry and deopt handler),
// stubs and interpreter codelets; and libjvm's functions. Turns symbolic positions into addresses
// and back.
//
// Sources: JVMTI CompiledMethodLoad/Unload and DynamicCodeGenerated, the code heaps' segment maps
// (nmethod headers) and the interpreter's StubQueue by VM structures; libjvm's symbol table.
// Threads: as MethodTable - callbacks append, the control thread absorbs, the owner of the halted
// world reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/input/input.h"
#include "harness/jvm/modules.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm {

struct CodeEntry {
  uintptr_t begin = 0;  // first instruction
  uintptr_t end = 0;
  CodeKind kind = CodeKind::stub;
  std::string name;
  uint8_t tier = 0;              // nmethod
  uintptr_t verified_entry = 0;  // nmethod; 0 when unknown
  uintptr_t deopt_handler = 0;   // nmethod; 0 when unknown
};

// A place in the code cache as a reference and a distance in bytes from its anchor.
struct CodePosition {
  CodeRef ref;
  int32_t delta = 0;
};

class CodeMap {
 public:
  explicit CodeMap(const VmStructs& vm);

  // From JVMTI callbacks; any thread, VM running. `name` is "pkg/Class.method".
  void add_nmethod(const void* code, size_t size, const std::string& name);
  void add_stub(const void* code, size_t size, const std::string& name);
  void remove(const void* code);
  // Reads the interpreter's codelets; once, after VM_INIT.
  void add_codelets();

  // Control thread, VM running: makes what was added visible below.
  void absorb();
  // The same with the world halted; false when a halted thread holds the lock.
  bool try_absorb();
  // Changes whenever absorb() changed something.
  uint64_t epoch() const { return epoch_; }

  // Not async-signal-safe; the first question about libjvm reads its symbol table.
  std::optional<uintptr_t> resolve(const CodeRef& ref) const;
  const CodeEntry* find(uintptr_t address) const;
  std::optional<CodePosition> describe(uintptr_t address) const;
  const std::vector<CodeEntry>& entries() const { return entries_; }

 private:
  struct Event {
    bool removed = false;
    CodeEntry entry;
  };
  // The CodeBlob that holds an address, by the code heaps' segment maps; null when none does.
  // As HotSpot's CodeHeap::find_start (memory/heap.cpp).
  const std::byte* find_blob(uintptr_t address) const;
  void fill_nmethod(CodeEntry* entry) const;
  bool take_pending();
  void index();
  const FunctionTable& functions() const;
  std::optional<CodePosition> describe_function(uintptr_t address) const;

  const VmStructs& vm_;
  std::mutex mutex_;
  std::vector<Event> pending_;
  std::map<std::pair<uintptr_t, uintptr_t>, CodeEntry> by_range_;  // (begin, ~end)
  std::vector<CodeEntry> entries_;  // sorted by begin, enclosing ranges first
  std::unordered_map<std::string, std::vector<size_t>> by_name_;
  uint64_t epoch_ = 0;
  std::optional<Module> library_;                     // libjvm
  mutable std::unique_ptr<FunctionTable> functions_;  // of library_, once it was asked for
};

}  // namespace framestorm
