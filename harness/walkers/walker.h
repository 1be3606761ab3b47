// A walker under test, as the executor sees it.
#pragma once

#include <jni.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "harness/input/input.h"
#include "harness/jvm/jvm.h"

namespace framestorm {

constexpr bool is_java(FrameType type) {
  return type >= FrameType::java && type <= FrameType::native;
}

inline constexpr int8_t kNoTier = -1;

struct Frame {
  jmethodID method = nullptr;
  int32_t bci = 0;
  uintptr_t pc = 0;
  uintptr_t sp = 0;
  uintptr_t bcp = 0;
  FrameType type = FrameType::none;
  int8_t tier = kNoTier;
  bool unnamed = false;        // of a native method, whose ID the walker's frames have no place for
  const char* name = nullptr;  // of a frame without a method, as the walker wrote it: see text_at
  bool operator==(const Frame&) const = default;
};

// The halted thread that a walker is given.
struct WalkTarget {
  void* java_thread = nullptr;  // HotSpot's Thread*, null for a thread the JVM does not know
  void* jni_env = nullptr;      // what the call passes as JNIEnv*, mutations applied
  jobject thread = nullptr;     // java.lang.Thread (global reference) or null; for gst
  int tid = 0;
  bool same_thread = false;
  uintptr_t stack_base = 0;
  uintptr_t stack_end = 0;
  int asked_tid = 0;  // what the call passes as OS thread id; -1 for the calling thread
  // As in CallArgs and Input.
  uint32_t options = 0;
  uint8_t accepted_kinds = 0;
  uint32_t accepted_states = 0;
  std::span<const IteratorCall> iterator_calls;
  std::span<const QueueCall> queue_calls;
  void drop_calls() {
    iterator_calls = {};
    queue_calls = {};
  }
};

// What a result is before the walk. No API documents it: a walker that returns without writing one is heard.
inline constexpr int32_t kNoResult = std::numeric_limits<int32_t>::min();

// Of which walks a complaint is right.
enum class ComplaintScope : uint8_t {
  always,
  same_frames,   // not where two calls may read their own stack, see WalkView::may_read_itself
  real_context,  // only of unmutated victims
  real_poll      // the same, and not where an interpreted frame may be partly there
};

// Something that an adapter saw its API do wrong, by comparing calls within one walk.
struct Complaint {
  std::string_view clause;  // stable identifier, static storage
  ComplaintScope scope = ComplaintScope::always;
  std::array<char, 120> detail = {};
};

// What the last walk said beside its frames.
struct WalkFacts {
  bool has_kind = false;
  int32_t kind = 0;  // ASGST_TRACE_KIND
  bool has_state = false;
  int32_t state = 0;  // JVMTI thread state
  bool has_env = false;
  const void* env = nullptr;      // JNIEnv* of the walked thread
  const char* stopped = nullptr;  // why it went no further; null at the stack's end or at the depth
  bool left_out_frozen = false;   // says that frames of the stack are in the heap, and not given
  bool put_together = false;      // of frames walked now and others kept from before
  int64_t contained_faults = 0;   // that the VM contained and counted meanwhile
  size_t complaint_count = 0;     // may be more than there is room for
  std::array<Complaint, 4> complaints = {};

  // Async-signal-safe.
  void clear() {
    has_kind = has_state = has_env = put_together = false;
    stopped = nullptr;
    left_out_frozen = false;
    contained_faults = 0;
    complaint_count = 0;
  }
};

// What a walker is stands in its row of the table (input/walker_table.h); an adapter says how to
// call it.
class Walker {
 public:
  virtual ~Walker() = default;
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  const WalkerTraits& traits() const { return *traits_; }
  WalkerId id() const { return traits_->id; }
  const FrameLayout& layout() const { return traits_->layout; }
  // Whether a result of 0 or below is one the walker documents.
  bool documented_error(int32_t code) const;
  // Short name of an error code: "unknown_Java". A string literal.
  std::string_view error_name(int32_t code) const;
  // Whether a documented error code may be returned for a victim in this HotSpot thread state
  // (JavaThreadState, utilities/globalDefinitions.hpp).
  bool error_agrees(int32_t code, uint32_t thread_state) const;

  // Whether it recovers from faults of its walk in a signal handler of its own, which then gets
  // them first.
  virtual bool contains_faults() const { return false; }
  // Null for a walker whose API says nothing beside the frames. Valid until the next walk; that of
  // a walk that did not return says nothing.
  virtual const WalkFacts* facts() const { return nullptr; }
  // Whether what the last walk changed in the JavaThread is the walker's own, as JFR's queue of samples
  // there.
  virtual bool keeps_state_in_thread() const { return false; }
  // One walk. Writes frames[0..depth) at most and returns the walker's count or error code.
  // Signal context unless WalkerTraits::needs_running_vm.
  virtual int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                       void* ucontext) noexcept = 0;
  // Whether the walk just made has noted a request, which the thread answers once it runs on.
  virtual bool has_request() const { return false; }
  // Of the interpreted frame that it was noted in, as the request says; kNoBci: it says none.
  virtual int32_t requested_bci() const { return kNoBci; }
  // The trace that the thread answers it with, written and returned as of walk(); nothing when it
  // faulted. Control thread with its JNIEnv, VM running, world released; waits for the thread.
  virtual std::optional<int32_t> answer(JNIEnv* /*env*/, void* /*java_thread*/,
                                        std::byte* /*frames*/, int32_t /*depth*/) {
    return 0;
  }
  // The walk did not return. On the thread that made it, right after; signal context, in the guard.
  virtual void abandoned(const WalkTarget&) noexcept {}
  // Once it has returned, not in signal context: makes jmethodIDs of what else the walker has for
  // methods.
  virtual void resolve_methods(std::byte* /*frames*/, size_t /*count*/) const {}

 protected:
  explicit Walker(WalkerId id) : Walker(traits_of(id)) {}
  // Of a walker that is no row of the table; borrows `traits`.
  explicit Walker(const WalkerTraits& traits) : traits_(&traits) {}

 private:
  const WalkerTraits* traits_;
};

Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index);
// The same; an unnamed native method gets its ID, and its name with it, where its pc is in code that was
// compiled for it. In the interpreter it stays as it is.
Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index,
                 const CodeMap& code);

// "pkg/Class.method" of its method, kUnnamedNative, or "?" where it has none that is known.
std::string method_name(const Frame& frame, const MethodTable& methods);

// The text that a walker points at, as much of it as can be read; not async-signal-safe.
std::string text_at(const char* text);

// Whether the first `count` frames of two arrays say the same; padding does not count.
bool same_frames(const FrameLayout& layout, const std::byte* a, const std::byte* b, size_t count);

// Whether the frames of the second array are those of the first but for methods that have no ID any
// more, as those have not that a redefinition makes obsolete. Any context.
bool lost_methods(const FrameLayout& layout, const std::byte* earlier, const std::byte* later,
                  size_t count);

// The address of a function, for a pointer of any type.
struct Export {
  void* address;
  template <typename Function>
  operator Function*() const {
    return reinterpret_cast<Function*>(address);
  }
};

// Where adapters look up the functions they call.
struct Exports {
  std::string library;  // for messages
  std::function<void*(const char*)> find;
  jvmtiEnv* jvmti = nullptr;
  size_t jni_env = 0;  // where a JavaThread has its JNIEnv
  // Lowest address and end; where that is not known, any may be in it.
  std::pair<uintptr_t, uintptr_t> code_cache = {0, UINTPTR_MAX};

  Exports(std::string name, std::function<void*(const char*)> lookup)
      : library(std::move(name)), find(std::move(lookup)) {}
  // Of libjvm. Borrows `jvm`.
  explicit Exports(const Jvm& jvm);

  // Both throw SetupError, which says how to get a JDK that has it. The walker's entry point:
  Export require(WalkerId id) const;
  // Another function of those that come from there.
  Export require(const char* name, WalkerOrigin origin = WalkerOrigin::added) const;
};

// The door of adapters: for every row of the table a file of this folder defines
//   std::unique_ptr<Walker> make_adapter(AdapterOf<WalkerId::asgct>, const Exports& exports)
// which throws SetupError when the JVM does not have what it needs. A row without one does not
// link.
template <WalkerId id>
struct AdapterOf {
  friend std::unique_ptr<Walker> make_adapter(AdapterOf, const Exports& exports);
};

// The adapter of an id. Throws SetupError, also for `plugin`: that is a file's.
std::unique_ptr<Walker> make_walker(WalkerId id, const Exports& exports);
std::unique_ptr<Walker> make_walker(WalkerId id, const Jvm& jvm);
// The walker in a shared object: FILE[=OPTIONS]. Throws SetupError when it is none.
std::unique_ptr<Walker> make_plugin(Jvm& jvm, const std::string& plugin);

}  // namespace framestorm
