// A walker under test, as the executor sees it.
#pragma once

#include <jni.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/input/input.h"
#include "harness/jvm/jvm.h"

namespace framestorm {

// What a frame is, whatever number the walker's API has for it.
enum class FrameType : uint8_t {
  none,  // the walker does not say
  java,  // interpreted or compiled
  interpreted,
  compiled,
  inlined,  // into the frame that follows
  native,   // a native method
  cpp,      // C, C++, code that the VM made
  invalid   // a number that the API does not have
};

constexpr bool is_java(FrameType type) {
  return type >= FrameType::java && type <= FrameType::native;
}

// Where a walker's frames keep what oracles look at: byte offsets in one frame, -1 when absent.
struct FrameLayout {
  size_t stride = 0;
  int method = -1;  // jmethodID
  int bci = -1;     // int32, or uint16 of which 65535 means none
  int pc = -1;      // pointer
  int sp = -1;      // pointer
  int type = -1;    // uint8
  int tier = -1;    // int8
  size_t bci_size = sizeof(int32_t);
  std::array<FrameType, 5> types = {};  // by the number that the API has for it

  // Frames are a union: those of C and C++ have a pc and nothing else, all others have none.
  constexpr bool is_union() const { return method >= 0 && method == pc; }
};

inline constexpr int32_t kNoBci = -1;
inline constexpr int8_t kNoTier = -1;

struct Frame {
  jmethodID method = nullptr;
  int32_t bci = 0;
  uintptr_t pc = 0;
  uintptr_t sp = 0;
  FrameType type = FrameType::none;
  int8_t tier = kNoTier;
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
};

// Of which walks a complaint is right.
enum class ComplaintScope : uint8_t {
  always,
  same_frames,  // not where two calls may read their own stack, see WalkView::may_read_itself
  real_context  // only of unmutated victims
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
  int64_t contained_faults = 0;   // that the VM contained and counted meanwhile
  size_t complaint_count = 0;     // may be more than there is room for
  std::array<Complaint, 4> complaints = {};

  // Async-signal-safe.
  void clear() {
    has_kind = has_state = has_env = false;
    stopped = nullptr;
    contained_faults = 0;
    complaint_count = 0;
  }
};

class Walker {
 public:
  virtual ~Walker() = default;
  virtual WalkerId id() const = 0;
  virtual std::string_view description() const = 0;
  virtual const FrameLayout& layout() const = 0;
  // True for a walker that needs the victim at a safepoint: it is called with the world released,
  // on the control thread, and nothing is mutated.
  virtual bool needs_running_vm() const { return false; }
  // Whether it takes the calling thread for the one to walk, so that in separate-thread mode it has
  // to be called under the victim's identity (ThreadIdentity::Scoped). Otherwise it finds the
  // victim by itself, and must get on without.
  virtual bool borrows_identity() const { return true; }
  // Null for a walker whose API says nothing beside the frames. Valid until the next walk; that of
  // a walk that did not return says nothing.
  virtual const WalkFacts* facts() const { return nullptr; }
  // The result of a walk whose fault the VM contained itself.
  virtual std::optional<int32_t> contained_error() const { return std::nullopt; }
  // Whether a negative result is one the walker documents.
  virtual bool documented_error(int32_t code) const = 0;
  // Short name of a documented error code: "unknown_Java".
  virtual std::string_view error_name(int32_t code) const = 0;
  // Whether a documented error code may be returned for a victim in this HotSpot thread state
  // (JavaThreadState, utilities/globalDefinitions.hpp).
  virtual bool error_agrees(int32_t code, uint32_t thread_state) const = 0;
  // The lowest documented value of bci for a Java frame; -1 unknown, -3 native in
  // AsyncGetCallTrace.
  virtual int32_t lowest_bci() const = 0;
  // What stands for the bci in frames of native methods, where that is documented.
  virtual std::optional<int32_t> native_bci() const { return std::nullopt; }

  // One walk. Writes frames[0..depth) at most and returns the walker's count or error code.
  // Signal context unless needs_running_vm().
  virtual int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                       void* ucontext) noexcept = 0;
};

Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index);

// Whether the first `count` frames of two arrays say the same; padding does not count.
bool same_frames(const FrameLayout& layout, const std::byte* a, const std::byte* b, size_t count);

// Whether the frames of the second array are those of the first but for methods that have no ID any
// more, as those have not that a redefinition makes obsolete. Any context.
bool lost_methods(const FrameLayout& layout, const std::byte* earlier, const std::byte* later,
                  size_t count);

// Where adapters look up the functions they call.
struct Exports {
  std::string library;  // for messages
  std::function<void*(const char*)> find;

  Exports(std::string name, std::function<void*(const char*)> lookup)
      : library(std::move(name)), find(std::move(lookup)) {}
  // Of libjvm. Borrows `jvm`.
  explicit Exports(const Jvm& jvm);

  // Throws SetupError, which says how to get a JDK that has it.
  void* require(const char* name) const;
};

// The adapters. Each throws SetupError when the JVM (or the .so) does not have what it needs.
std::unique_ptr<Walker> make_asgct(const Jvm& jvm);
std::unique_ptr<Walker> make_gst(const Jvm& jvm);
std::unique_ptr<Walker> make_asgst(const Exports& exports);
std::unique_ptr<Walker> make_asgst_env(const Exports& exports);
std::unique_ptr<Walker> make_asgst_thread(const Exports& exports);
std::unique_ptr<Walker> make_asgct2(const Exports& exports);
std::unique_ptr<Walker> make_asgst_iterator(const Exports& exports);
std::unique_ptr<Walker> make_asgst_frame(const Exports& exports);
std::unique_ptr<Walker> make_plugin(const Jvm& jvm, const std::filesystem::path& shared_object);
// That of an id; not of `plugin`, which is a file's. Throws SetupError as they do.
std::unique_ptr<Walker> make_walker(WalkerId id, const Jvm& jvm);

}  // namespace framestorm
