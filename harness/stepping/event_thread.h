// Has the VM do things to a program while its stepped thread stands in the trap handler.
//
//   stepped thread, in the handler          EventThread's own             the VM
//   ─────────────────────────────────       ─────────────────────────     ──────────────────────────
//   ask(event, its methods)  ── futex ──>   JVMTI, WhiteBox or JNI  ──>   wants a safepoint or a
//   waits until that thread is blocked      waits for the VM              handshake
//   is walked, and steps on ...
//   ... to a poll, and stands there ───────────────────────────────────>  does it
//   steps on   <─────────────────────────   is done
#pragma once

#include <jni.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "harness/jvm/jvm.h"
#include "harness/victim/world.h"

namespace framestorm::stepping {

class EventThread {
 public:
  static constexpr size_t kMethods = 8;

  // Starts the thread and attaches it. The VM runs; not in signal context. Throws SetupError where
  // the JVM does not let an agent do what events do.
  explicit EventThread(Jvm& jvm);
  ~EventThread();
  EventThread(const EventThread&) = delete;
  EventThread& operator=(const EventThread&) = delete;

  // Asks for an event that the VM does, of the methods (innermost first) of the calling thread's
  // stack; those beyond kMethods do not count. Comes back when the VM has been asked, or after some
  // milliseconds. Not while another is under way. Async-signal-safe.
  void ask(StepEvent event, std::span<const jmethodID> methods);

  // Whose stack that is; `java_thread`: HotSpot's. `env`: the calling thread's; not while one is under
  // way, nor in signal context.
  void set_thread(JNIEnv* env, jthread thread, const void* java_thread);

  // Any context.
  bool under_way() const { return under_way_.load(std::memory_order_acquire); }
  // Of the last one, once it is over: why it took no effect, static storage; null: it did.
  const char* why_not() const { return why_not_; }

 private:
  void serve();
  // Why it took no effect; null: it did.
  const char* perform(JNIEnv* env);
  const char* collect(JNIEnv* env);
  const char* deoptimise(JNIEnv* env);
  const char* redefine();
  const char* unload(JNIEnv* env);
  const char* pop_frame();
  // Of the stepped thread, which is suspended.
  bool resolves_a_call() const;
  const char* exit(JNIEnv* env);

  Jvm& jvm_;
  ThreadSlot asked_, ready_;  // their futex words
  std::atomic<bool> over_{false}, under_way_{false};
  std::atomic<const void*> own_thread_{nullptr};  // HotSpot's
  StepEvent event_ = StepEvent::none;
  jthread stepped_ = nullptr;  // a global reference
  const void* stepped_thread_ = nullptr;
  std::vector<std::pair<uintptr_t, uintptr_t>> resolvers_;  // code that resolves compiled calls
  std::array<jmethodID, kMethods> methods_ = {};
  size_t method_count_ = 0;
  const char* why_not_ = nullptr;
  std::thread thread_;
};

}  // namespace framestorm::stepping
