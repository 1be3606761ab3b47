// A walker under test, as the engine sees it.
#pragma once

#include <jni.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "harness/input/input.h"
#include "harness/jvm/jvm.h"

namespace framestorm {

// Where a walker's frames keep what oracles look at: byte offsets in one frame, -1 when absent.
struct FrameLayout {
  size_t stride = 0;
  int method = -1;  // jmethodID
  int bci = -1;     // int32
  int pc = -1;      // pointer
  int sp = -1;      // pointer
};

struct Frame {
  jmethodID method = nullptr;
  int32_t bci = 0;
  uintptr_t pc = 0;
  uintptr_t sp = 0;
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
};

class Walker {
 public:
  virtual ~Walker() = default;
  virtual WalkerId id() const = 0;
  virtual std::string_view description() const = 0;
  virtual const FrameLayout& layout() const = 0;
  // True for a walker that needs the victim at a safepoint: it is called with the world released,
  // on the conductor, and nothing is mutated.
  virtual bool needs_running_vm() const { return false; }
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

  // One walk. Writes frames[0..depth) at most and returns the walker's count or error code.
  // Signal context unless needs_running_vm().
  virtual int32_t walk(const WalkTarget& target, std::byte* frames, int32_t depth,
                       void* ucontext) noexcept = 0;
};

Frame read_frame(const FrameLayout& layout, const std::byte* frames, size_t index);

// Whether the first `count` frames of two arrays say the same; padding does not count.
bool same_frames(const FrameLayout& layout, const std::byte* a, const std::byte* b, size_t count);

// The adapters. Each throws SetupError when the JVM (or the .so) does not have what it needs.
std::unique_ptr<Walker> make_asgct(const Jvm& jvm);
std::unique_ptr<Walker> make_gst(const Jvm& jvm);
std::unique_ptr<Walker> make_plugin(const Jvm& jvm, const std::filesystem::path& shared_object);

}  // namespace framestorm
