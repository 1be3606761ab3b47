// What stands where in the code cache: nmethods (with tier, verified entry and deopt handler),
// stubs and interpreter codelets; and libjvm's functions. Turns symbolic positions into addresses
// and back.
//
// Sources: JVMTI CompiledMethodLoad/Unload and DynamicCodeGenerated, the code heaps' segment maps
// (nmethod headers) and the interpreter's StubQueue by VM structures; libjvm's symbol table.
// Threads: as MethodTable - callbacks append, the control thread absorbs, the owner of the halted
// world reads.
#pragma once

#include <jni.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/input/input.h"
#include "harness/jvm/modules.h"
#include "harness/jvm/vm_structs.h"

namespace framestorm {

// What HotSpot has compiled where in one nmethod: the Java frames at each place with debug information
// (JVMTI's jvmticmlr.h, from nmethod's PcDescs). The place of a call is its return address.
class DebugInfo {
 public:
  struct JavaFrame {
    jmethodID method = nullptr;
    int32_t bci = 0;
    bool operator==(const JavaFrame&) const = default;
  };
  // `compile_info`: as JVMTI's CompiledMethodLoad has it, may be null.
  DebugInfo(jmethodID method, const void* compile_info);

  jmethodID method() const { return method_; }
  // Innermost first; the last one is of method(). Empty where there is no debug information.
  std::span<const JavaFrame> at(uintptr_t pc) const;
  // The same of the next place behind `pc` that has some.
  std::span<const JavaFrame> after(uintptr_t pc) const;
  bool has_places() const { return !places_.empty(); }
  // The same of each place that has debug information.
  auto places() const {
    return std::views::transform(places_, [this](const Place& place) { return frames_of(place); });
  }
  // Whether at some place `frames` are the outermost ones, where the bci of the innermost of them
  // does not count.
  bool has_inlined(std::span<const JavaFrame> frames) const;

 private:
  struct Place {
    uintptr_t pc = 0;
    size_t first = 0, count = 0;  // in frames_
  };
  std::span<const JavaFrame> frames_of(const Place& place) const {
    return std::span(frames_).subspan(place.first, place.count);
  }
  jmethodID method_;
  std::vector<Place> places_;  // by pc
  std::vector<JavaFrame> frames_;
};

struct CodeEntry {
  uintptr_t begin = 0;  // first instruction
  uintptr_t end = 0;
  CodeKind kind = CodeKind::stub;
  std::string name;
  uint8_t tier = 0;              // nmethod
  uintptr_t verified_entry = 0;  // nmethod; 0 when unknown
  uintptr_t deopt_handler = 0;   // nmethod; 0 when unknown
  uintptr_t frame_complete = 0;  // nmethod: its prologue ends there; 0 when unknown
  size_t frame_bytes = 0;        // nmethod: of its frame, with the return address
  uintptr_t stubs = 0;           // nmethod: its slow paths' stubs begin there; 0 when unknown
  std::shared_ptr<const DebugInfo> debug;  // nmethod
};

// Whether a method, or a stub of the interpreter, of this name is one that method handles jump through
// (prims/methodHandles.cpp): it has neither bytecodes nor a frame.
bool is_method_handle_intrinsic(std::string_view name);

// Whether a stub of this name takes a frame of compiled code down, for frames of the interpreter.
bool is_deoptimisation(std::string_view name);

// A place in the code cache as a reference and a distance in bytes from its anchor.
struct CodePosition {
  CodeRef ref;
  int32_t delta = 0;
};

class CodeMap {
 public:
  explicit CodeMap(const VmStructs& vm);

  // From JVMTI callbacks; any thread, VM running. `name` is "pkg/Class.method".
  void add_nmethod(const void* code, size_t size, const std::string& name, jmethodID method,
                   const void* compile_info);
  void add_stub(const void* code, size_t size, const std::string& name);
  void remove(const void* code);
  // Reads the interpreter's codelets and where the code cache is; once, after VM_INIT.
  void add_codelets();

  // Control thread, VM running: makes what was added visible below.
  void absorb();
  // The same with the world halted; false when a halted thread holds the lock.
  bool try_absorb();
  // Whether there is something to absorb. Any context.
  bool has_pending() const { return pending_count_.load(std::memory_order_acquire) > 0; }
  // Changes whenever absorb() changed something.
  uint64_t epoch() const { return epoch_; }

  // Not async-signal-safe; the first question about libjvm reads its symbol table.
  std::optional<uintptr_t> resolve(const CodeRef& ref) const;
  const CodeEntry* find(uintptr_t address) const;
  // The native method that the code at `address` was compiled for; null where none is known.
  jmethodID native_at(uintptr_t address) const;
  // Also where nothing is known to be.
  bool in_code_cache(uintptr_t address) const { return address >= low_ && address < high_; }
  // Lowest address, and the end.
  std::pair<uintptr_t, uintptr_t> code_cache() const { return {low_, high_}; }
  // Whether it is in a CodeBlob's memory and not in its code: no pc is there, and HotSpot's
  // CodeCache::find_blob finds the blob all the same. False where this HotSpot does not say. Nobody
  // may be changing the code cache.
  bool is_beside_code(uintptr_t address) const;
  // The CodeBlob that holds an address, by the code heaps' segment maps; null when none does.
  // As HotSpot's CodeHeap::find_start (memory/heap.cpp).
  const std::byte* find_blob(uintptr_t address) const;
  // Whether this HotSpot says where its code cache is.
  bool knows_code_cache() const { return high_ != 0; }
  std::optional<CodePosition> describe(uintptr_t address) const;
  // By where they begin, enclosing ranges first.
  auto entries() const { return std::views::values(by_range_); }

 private:
  struct Event {
    bool removed = false;
    CodeEntry entry;
  };
  void fill_nmethod(CodeEntry* entry) const;
  void add(Event event);
  void take_pending();
  using ByName = std::unordered_map<std::string_view, std::vector<const CodeEntry*>>;
  const ByName& by_name() const;
  const FunctionTable& functions() const;
  std::optional<CodePosition> describe_function(uintptr_t address) const;

  const VmStructs& vm_;
  uintptr_t low_ = 0, high_ = 0;  // of the code cache
  std::mutex mutex_;
  std::vector<Event> pending_;
  std::atomic<size_t> pending_count_{0};
  std::map<std::pair<uintptr_t, uintptr_t>, CodeEntry> by_range_;  // (begin, ~end)
  uint64_t epoch_ = 0;
  mutable ByName by_name_;  // as it was at that epoch
  mutable uint64_t named_epoch_ = 0;
  std::optional<Module> library_;                     // libjvm
  mutable std::unique_ptr<FunctionTable> functions_;  // of library_, once it was asked for
};

}  // namespace framestorm
